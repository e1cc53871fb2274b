#!/bin/sh
# Stands for the entrypoint of the image mariadb: accounts, a primary to follow, and the server, as its variables say.
set -eu
data=/var/lib/mysql
if [ ! -d "$data/mysql" ]; then
    mariadb-install-db --no-defaults --user=root --datadir="$data" --auth-root-authentication-method=normal >/dev/null
    cat >/tmp/first.sql <<-SQL
	SET sql_log_bin = 0;
	ALTER USER root@localhost IDENTIFIED BY '$MARIADB_ROOT_PASSWORD';
	CREATE USER $MARIADB_REPLICATION_USER IDENTIFIED BY '$MARIADB_REPLICATION_PASSWORD';
	GRANT REPLICATION SLAVE ON *.* TO $MARIADB_REPLICATION_USER;
	SET sql_log_bin = 1;
	SQL
    [ -z "${MARIADB_MASTER_HOST:-}" ] || cat >>/tmp/first.sql <<-SQL
	CHANGE MASTER TO MASTER_HOST='$MARIADB_MASTER_HOST', MASTER_USER='$MARIADB_REPLICATION_USER',
	    MASTER_PASSWORD='$MARIADB_REPLICATION_PASSWORD', MASTER_CONNECT_RETRY=1, MASTER_USE_GTID=slave_pos;
	START SLAVE;
	SQL
    set -- --init-file=/tmp/first.sql "$@"
fi
mkdir -p /run/mysqld
exec mariadbd --no-defaults --user=root --datadir="$data" --socket=/run/mysqld/mysqld.sock "$@"
