import com.github.shyiko.mysql.binlog.event.TableMapEventData;
import com.github.shyiko.mysql.binlog.event.TableMapEventMetadata;
import com.github.shyiko.mysql.binlog.event.deserialization.ColumnType;
import java.io.Serializable;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Rows of the library as values of JSON, with what a TABLE_MAP event says of their columns. */
final class Values {
    private static final DateTimeFormatter MOMENT = DateTimeFormatter.ofPattern("uuuu-MM-dd HH:mm:ss");
    private static final long SECOND_US = 1_000_000;

    private Values() {}

    /** The columns that are there: by name if the event has names, else by position. */
    static Object image(TableMapEventData table, BitSet columns, Serializable[] row) {
        TableMapEventMetadata metadata = table.getEventMetadata();
        List<String> names = metadata == null ? null : metadata.getColumnNames();
        Map<String, Object> named = new LinkedHashMap<>();
        List<Object> listed = new ArrayList<>();
        int next = 0;
        for (int column = 0; column < table.getColumnTypes().length; column++) {
            boolean isThere = columns.get(column);
            Object value = isThere ? value(table, column, row[next++]) : null;
            listed.add(value);
            if (isThere && names != null) {
                named.put(names.get(column), value);
            }
        }
        return names == null ? listed : named;
    }

    private static Object value(TableMapEventData table, int column, Serializable value) {
        TableMapEventMetadata metadata = table.getEventMetadata();
        boolean isUnsigned = metadata != null && metadata.getSignedness() != null && metadata.getSignedness().get(column);
        ColumnType type = ColumnType.byCode(table.getColumnTypes()[column] & 0xff);
        int digits = table.getColumnMetadata()[column];
        if (value instanceof byte[] bytes) {
            return Lines.text(bytes);
        }
        if (value instanceof BigDecimal number) {
            return number.toPlainString();
        }
        if (value instanceof BitSet bits) {
            return bits.length() == 0 ? 0 : new BigInteger(1, reversed(bits.toByteArray()));
        }
        if (value instanceof Long number && type != null) {
            return switch (type) {
                case DATE, NEWDATE -> number == Long.MIN_VALUE ? "0000-00-00" : moment(number, 0).substring(0, 10);
                case DATETIME, TIMESTAMP -> moment(number, 0);
                case DATETIME_V2, TIMESTAMP_V2 -> moment(number, digits);
                case TIME -> time(number, 0);
                case TIME_V2 -> time(number, digits);
                case LONGLONG -> isUnsigned ? new BigInteger(Long.toUnsignedString(number)) : number;
                default -> number;
            };
        }
        if (value instanceof Integer number && isUnsigned && number < 0 && type != null) {
            return switch (type) {
                case TINY -> number & 0xff;
                case SHORT -> number & 0xffff;
                case INT24 -> number & 0xffffff;
                default -> Integer.toUnsignedLong(number);
            };
        }
        return value instanceof Number || value == null ? value : value.toString();
    }

    private static byte[] reversed(byte[] bytes) {
        byte[] result = new byte[bytes.length];
        for (int index = 0; index < bytes.length; index++) {
            result[index] = bytes[bytes.length - 1 - index];
        }
        return result;
    }

    private static String moment(long us, int digits) {
        if (us == Long.MIN_VALUE) {
            return "0000-00-00 00:00:00" + fraction(0, digits);
        }
        long second = Math.floorDiv(us, SECOND_US);
        return LocalDateTime.ofEpochSecond(second, 0, ZoneOffset.UTC).format(MOMENT)
                + fraction(Math.floorMod(us, SECOND_US), digits);
    }

    private static String time(long us, int digits) {
        long second = Math.abs(us) / SECOND_US;
        String whole = String.format("%02d:%02d:%02d", second / 3600, second / 60 % 60, second % 60);
        return (us < 0 ? "-" : "") + whole + fraction(Math.abs(us) % SECOND_US, digits);
    }

    private static String fraction(long us, int digits) {
        return digits == 0 ? "" : "." + String.format("%06d", us).substring(0, Math.min(digits, 6));
    }
}
