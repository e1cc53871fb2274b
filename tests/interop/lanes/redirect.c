/* Preloaded into a server: a connection to 127.0.0.1:PORT goes to the port that RELAYS_PORT names, at the address
   127.HIGH.LOW.1 of the same machine, which tells who listens there which port was meant. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

int connect(int fd, const struct sockaddr *address, socklen_t length)
{
    static int (*real)(int, const struct sockaddr *, socklen_t);
    const char *relays = getenv("RELAYS_PORT");
    if (real == NULL)
        real = (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "connect");
    if (relays != NULL && address->sa_family == AF_INET && length >= sizeof(struct sockaddr_in)) {
        struct sockaddr_in there = *(const struct sockaddr_in *)address;
        if (there.sin_addr.s_addr == htonl(INADDR_LOOPBACK)) {
            there.sin_addr.s_addr = htonl(0x7f000001u | (unsigned)ntohs(there.sin_port) << 8);
            there.sin_port = htons((unsigned short)atoi(relays));
            return real(fd, (const struct sockaddr *)&there, sizeof there);
        }
    }
    return real(fd, address, length);
}
