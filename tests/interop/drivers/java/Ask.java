import java.sql.*;
import java.util.*;

/** Connects with a JDBC driver, asks each statement that stands in a file, and prints what comes. */
public class Ask {
    public static void main(String[] arguments) throws Exception {
        String url = arguments[0], user = arguments[1], password = arguments[2];
        DriverManager.setLoginTimeout(30);
        try (Connection connection = DriverManager.getConnection(url, user, password);
                Statement statement = connection.createStatement()) {
            System.out.println("connected\t" + connection.getMetaData().getDriverName() + "\t" + connection.isValid(10));
            for (String sql : new String(System.in.readAllBytes(), "UTF-8").split("\n")) {
                if (sql.isBlank()) continue;
                System.out.println(sql + "\t" + answer(statement, sql));
            }
            connection.setAutoCommit(false);
            connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            Savepoint savepoint = connection.setSavepoint("sp");
            connection.rollback(savepoint);
            connection.rollback();
            connection.setAutoCommit(true);
            List<String> catalogs = new ArrayList<>();
            try (ResultSet rows = connection.getMetaData().getCatalogs()) {
                while (rows.next()) catalogs.add(rows.getString(1));
            }
            Collections.sort(catalogs);
            System.out.println("catalogs\t" + String.join(",", catalogs));
        }
    }

    static String answer(Statement statement, String sql) {
        try {
            if (!statement.execute(sql)) return "OK";
            List<String> rows = new ArrayList<>();
            try (ResultSet result = statement.getResultSet()) {
                int width = result.getMetaData().getColumnCount();
                while (result.next()) {
                    List<String> values = new ArrayList<>();
                    for (int i = 1; i <= width; i++) values.add(String.valueOf(result.getString(i)));
                    rows.add(String.join("|", values));
                }
            }
            return "ROWS\t" + String.join("\t", rows);
        } catch (SQLException error) {
            return "ERROR\t" + error.getErrorCode();
        }
    }
}
