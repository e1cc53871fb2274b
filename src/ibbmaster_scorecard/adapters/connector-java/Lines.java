import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeFormatterBuilder;
import java.time.temporal.ChronoField;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

/** The lines of an adapter: one JSON object comes in, objects go out, and the end of the input ends the program. */
final class Lines {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long SECOND_US = 1_000_000;
    private static final DateTimeFormatter MOMENT = new DateTimeFormatterBuilder()
            .appendPattern("uuuu-MM-dd HH:mm:ss").appendFraction(ChronoField.MICRO_OF_SECOND, 0, 6, true).toFormatter();

    /** Unchecked exceptions that a library throws on purpose; all others are faults in its code. */
    private static final Set<Class<?>> ON_PURPOSE =
            Set.of(RuntimeException.class, IllegalStateException.class, IllegalArgumentException.class,
                    UnsupportedOperationException.class, java.io.UncheckedIOException.class);

    private Lines() {}

    /** What to follow, and from where; `library` is a class of the library whose version is printed. */
    static JsonNode read(Class<?> library) throws IOException {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        JsonNode start = JSON.readTree(input.readLine());
        Thread.setDefaultUncaughtExceptionHandler((thread, error) -> {
            error("thread " + thread.getName(), error, true, false);
            Runtime.getRuntime().halt(1);
        });
        Thread watcher = new Thread(() -> haltAtEnd(input), "input");
        watcher.setDaemon(true);
        watcher.start();
        String jar = library.getProtectionDomain().getCodeSource().getLocation().getPath();
        String version = jar.substring(jar.lastIndexOf('/') + 1).replaceFirst("-(?=\\d)", " ").replace(".jar", "");
        print("version", "text", version + ", Java " + Runtime.version().feature());
        return start;
    }

    private static void haltAtEnd(BufferedReader input) {
        try {
            while (input.readLine() != null) {}
        } catch (IOException error) {
            // a broken pipe is an end, too
        }
        Runtime.getRuntime().halt(0); // closing a library in order may take long, and nobody reads any more
    }

    /** Prints one event: its word, then keys and values in turn. */
    static synchronized void print(String event, Object... keysAndValues) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("event", event);
        for (int index = 0; index < keysAndValues.length; index += 2) {
            line.put((String) keysAndValues[index], keysAndValues[index + 1]);
        }
        try {
            System.out.write((JSON.writeValueAsString(line) + "\n").getBytes(StandardCharsets.UTF_8));
        } catch (IOException error) {
            throw new IllegalStateException("a line cannot be written: " + line, error);
        }
        System.out.flush();
    }

    /** Prints what the library tells of an error; `isRetried` is a connection that it takes up again by itself. */
    static void error(String what, Throwable error, boolean isFatal, boolean isRetried) {
        Throwable cause = error;
        for (int depth = 0; cause != null && cause.getCause() != null && depth < 50; depth++) {
            cause = cause.getCause();
        }
        boolean isInternal = cause instanceof Error || cause instanceof RuntimeException && !isOnPurpose(cause);
        String text = cause == null || cause == error ? "" + error : error + ", caused by " + cause;
        print("error", "text", error == null ? what : what + ": " + text,
                "is_fatal", isFatal, "is_internal", isInternal, "is_retried", isRetried);
    }

    /** Of an exception's class, or of one that the library has made of its own. */
    private static boolean isOnPurpose(Throwable cause) {
        return ON_PURPOSE.contains(cause.getClass()) || !cause.getClass().getName().startsWith("java.");
    }

    /** Bytes as text if they are UTF-8, else as hexadecimal digits. */
    static String text(byte[] bytes) {
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
        } catch (CharacterCodingException error) {
            return "0x" + HexFormat.of().formatHex(bytes);
        }
    }

    /** A date with a time, of microseconds since 1970. */
    static String moment(long us) {
        return MOMENT.format(LocalDateTime.ofEpochSecond(
                Math.floorDiv(us, SECOND_US), (int) Math.floorMod(us, SECOND_US) * 1000, ZoneOffset.UTC));
    }

    /** A time of microseconds, which may be negative, and longer than a day. */
    static String time(long us) {
        long second = Math.abs(us) / SECOND_US;
        return String.format("%s%02d:%02d:%02d.%06d",
                us < 0 ? "-" : "", second / 3600, second / 60 % 60, second % 60, Math.abs(us) % SECOND_US);
    }

    /** The number whose bytes these are, the lowest first. */
    static BigInteger number(byte[] bytes) {
        BigInteger number = BigInteger.ZERO;
        for (int index = bytes.length - 1; index >= 0; index--) {
            number = number.shiftLeft(8).or(BigInteger.valueOf(bytes[index] & 0xff));
        }
        return number;
    }
}
