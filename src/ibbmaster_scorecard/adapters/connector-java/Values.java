import com.github.shyiko.mysql.binlog.event.TableMapEventData;
import com.github.shyiko.mysql.binlog.event.TableMapEventMetadata;
import com.github.shyiko.mysql.binlog.event.deserialization.ColumnType;
import java.io.Serializable;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.text.SimpleDateFormat;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collection;
import java.util.Date;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TimeZone;

/** Rows of the library as values of JSON, with what a TABLE_MAP event says of their columns. */
final class Values {
    private Values() {}

    /** The names of all columns; null if the event has none. */
    static List<String> names(TableMapEventData table) {
        TableMapEventMetadata metadata = table.getEventMetadata();
        return metadata == null ? null : metadata.getColumnNames();
    }

    /** The columns of the primary key by name, in its order; null if the event has no names. */
    static List<String> key(TableMapEventData table) {
        List<String> names = names(table);
        if (names == null) {
            return null;
        }
        TableMapEventMetadata metadata = table.getEventMetadata();
        Collection<Integer> key = metadata.getSimplePrimaryKeys();
        if (key == null && metadata.getPrimaryKeysWithPrefix() != null) {
            key = metadata.getPrimaryKeysWithPrefix().keySet();
        }
        return key == null ? List.of() : key.stream().map(names::get).toList();
    }

    /** The numbers of all types, as the event has them. */
    static List<Integer> types(TableMapEventData table) {
        List<Integer> types = new ArrayList<>();
        for (byte type : table.getColumnTypes()) {
            types.add(type & 0xff);
        }
        return types;
    }

    /** The columns that are there: by name if the event has names, else by position. */
    static Object image(TableMapEventData table, BitSet columns, Serializable[] row) {
        List<String> names = names(table);
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
        ColumnType type = type(table, column);
        if (value instanceof byte[] bytes) {
            return Lines.text(bytes);
        }
        if (value instanceof BigDecimal number) {
            return number.toPlainString();
        }
        if (value instanceof BitSet bits) {
            return Lines.number(bits.toByteArray());
        }
        if (type == null || !(value instanceof Integer || value instanceof Long)) {
            return value;
        }
        long number = ((Number) value).longValue();
        return switch (type) {
            case DATE -> number == Long.MIN_VALUE ? "0000-00-00" : moment(number).substring(0, 10);
            case DATETIME, DATETIME_V2, TIMESTAMP, TIMESTAMP_V2 ->
                    number == Long.MIN_VALUE ? "0000-00-00 00:00:00" : moment(number);
            case TIME, TIME_V2 -> Lines.time(number);
            case TINY -> isUnsigned(table, column) ? number & 0xff : number;
            case SHORT -> isUnsigned(table, column) ? number & 0xffff : number;
            case INT24 -> isUnsigned(table, column) ? number & 0xffffff : number;
            case LONG -> isUnsigned(table, column) ? number & 0xffffffffL : number;
            case LONGLONG -> isUnsigned(table, column) ? new BigInteger(Long.toUnsignedString(number)) : number;
            case ENUM -> chosen(table, column, number);
            case SET -> contained(table, column, number);
            default -> number;
        };
    }

    /** A date with a time; the library counts days as java.util.Date does, in the Julian calendar before 1582. */
    private static String moment(long us) {
        SimpleDateFormat format = new SimpleDateFormat("yyyy-MM-dd HH:mm:ss");
        format.setTimeZone(TimeZone.getTimeZone("UTC"));
        return format.format(new Date(Math.floorDiv(us, 1000))) + String.format(".%06d", Math.floorMod(us, 1_000_000));
    }

    /** The type of a column; that of an ENUM or SET is in the metadata of a STRING. */
    private static ColumnType type(TableMapEventData table, int column) {
        ColumnType type = ColumnType.byCode(table.getColumnTypes()[column] & 0xff);
        ColumnType real = ColumnType.byCode(table.getColumnMetadata()[column] >> 8);
        return type == ColumnType.STRING && (real == ColumnType.ENUM || real == ColumnType.SET) ? real : type;
    }

    /** Whole numbers come signed; whether the column is, only newer servers tell. */
    private static boolean isUnsigned(TableMapEventData table, int column) {
        TableMapEventMetadata metadata = table.getEventMetadata();
        return metadata != null && metadata.getSignedness() != null && metadata.getSignedness().get(column);
    }

    private static Object chosen(TableMapEventData table, int column, long number) {
        String[] texts = texts(table, column, ColumnType.ENUM);
        return texts == null ? number : number == 0 ? "" : texts[(int) number - 1];
    }

    private static Object contained(TableMapEventData table, int column, long bits) {
        String[] texts = texts(table, column, ColumnType.SET);
        if (texts == null) {
            return bits;
        }
        List<String> found = new ArrayList<>();
        for (int index = 0; index < texts.length; index++) {
            if ((bits >> index & 1) == 1) {
                found.add(texts[index]);
            }
        }
        return String.join(",", found);
    }

    /** The texts of an ENUM or SET column, if the server logs them: lists of such columns only, in their order. */
    private static String[] texts(TableMapEventData table, int column, ColumnType type) {
        TableMapEventMetadata metadata = table.getEventMetadata();
        List<String[]> lists = metadata == null ? null
                : type == ColumnType.ENUM ? metadata.getEnumStrValues() : metadata.getSetStrValues();
        int place = 0;
        for (int other = 0; other < column; other++) {
            place += type(table, other) == type ? 1 : 0;
        }
        return lists == null || place >= lists.size() ? null : lists.get(place);
    }
}
