import java.sql.*;
import java.util.*;

/** Prints what JDBC's DatabaseMetaData tells of a schema, and what a table holds, read as text and prepared. */
public class Meta {
    public static void main(String[] arguments) throws Exception {
        String url = arguments[0], user = arguments[1], password = arguments[2], schema = arguments[3];
        try (Connection connection = DriverManager.getConnection(url, user, password)) {
            DatabaseMetaData meta = connection.getMetaData();
            print("tables", meta.getTables(schema, null, "%", new String[] {"TABLE"}));
            print("columns", meta.getColumns(schema, null, "%", "%"));
            List<String> tables = new ArrayList<>();
            try (ResultSet rows = meta.getTables(schema, null, "%", new String[] {"TABLE"})) {
                while (rows.next()) tables.add(rows.getString("TABLE_NAME"));
            }
            for (String table : tables) {
                print("primary keys " + table, meta.getPrimaryKeys(schema, null, table));
                print("indexes " + table, meta.getIndexInfo(schema, null, table, false, false));
                print("imported " + table, meta.getImportedKeys(schema, null, table));
                print("exported " + table, meta.getExportedKeys(schema, null, table));
            }
            for (String table : tables) {
                String sql = "SELECT * FROM `" + schema + "`.`" + table + "`";
                try (Statement statement = connection.createStatement()) {
                    print("rows " + table, statement.executeQuery(sql));
                }
                try (PreparedStatement statement = connection.prepareStatement(sql + " LIMIT ?")) {
                    statement.setInt(1, 1000);
                    print("prepared " + table, statement.executeQuery());
                }
            }
            print("types", meta.getTypeInfo());
        }
    }

    static void print(String title, ResultSet rows) throws Exception {
        ResultSetMetaData meta = rows.getMetaData();
        List<String> lines = new ArrayList<>();
        StringBuilder head = new StringBuilder(title);
        for (int i = 1; i <= meta.getColumnCount(); i++) {
            head.append("\t").append(meta.getColumnLabel(i));
            // Of what JDBC computes a driver reads the values, whatever type their expression has.
            if (title.startsWith("rows") || title.startsWith("prepared")) {
                head.append(":").append(meta.getColumnTypeName(i)).append(":").append(meta.getPrecision(i));
                head.append(":").append(meta.getScale(i)).append(":").append(meta.isSigned(i));
                head.append(":").append(meta.getTableName(i)).append(":").append(meta.isNullable(i));
            }
        }
        System.out.println(head);
        while (rows.next()) {
            StringBuilder line = new StringBuilder(title);
            for (int i = 1; i <= meta.getColumnCount(); i++) {
                Object value = rows.getObject(i);
                // How many different values there are is guessed by a server that keeps rows.
                if (meta.getColumnLabel(i).equals("CARDINALITY")) value = null;
                byte[] bytes = value instanceof byte[] ? (byte[]) value : String.valueOf(value).getBytes("UTF-8");
                line.append("\t").append(text(bytes));
            }
            lines.add(line.toString());
        }
        Collections.sort(lines);
        for (String line : lines) System.out.println(line);
        rows.close();
    }

    static String text(byte[] value) {
        StringBuilder found = new StringBuilder();
        for (byte one : value) {
            if (one >= 32 && one < 127 && one != '\\') found.append((char) one);
            else found.append(String.format("\\x%02x", one));
        }
        return found.toString();
    }
}
