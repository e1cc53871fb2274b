import com.github.shyiko.mysql.binlog.BinaryLogClient;
import com.github.shyiko.mysql.binlog.event.*;

/** Follows a primary from a GTID position with mysql-binlog-connector-java, and prints GTIDs and numbers of rows. */
public class Dump {
    public static void main(String[] arguments) throws Exception {
        BinaryLogClient client =
                new BinaryLogClient(arguments[0], Integer.parseInt(arguments[1]), arguments[2], arguments[3]);
        String last = arguments[5];
        client.setServerId(7001);
        client.setGtidSet(arguments[4]);
        client.setKeepAlive(false);
        boolean[] wasLast = {false};
        client.registerEventListener(event -> {
            EventData data = event.getData();
            if (wasLast[0] && (data instanceof MariadbGtidEventData)) {
                end(client);
                return;
            }
            if (data instanceof MariadbGtidEventData) {
                MariadbGtidEventData gtid = (MariadbGtidEventData) data;
                String text = Integer.toUnsignedString((int) gtid.getDomainId()) + "-"
                        + Integer.toUnsignedString((int) gtid.getServerId()) + "-" + gtid.getSequence();
                System.out.println("gtid\t" + text);
                wasLast[0] = text.equals(last);
            } else if (data instanceof WriteRowsEventData) {
                System.out.println("write\t" + ((WriteRowsEventData) data).getRows().size());
            } else if (data instanceof UpdateRowsEventData) {
                System.out.println("update\t" + ((UpdateRowsEventData) data).getRows().size());
            } else if (data instanceof DeleteRowsEventData) {
                System.out.println("delete\t" + ((DeleteRowsEventData) data).getRows().size());
            }
            boolean ends = data instanceof XidEventData || data instanceof QueryEventData;
            if (wasLast[0] && ends) end(client);
        });
        client.connect();
    }

    static void end(BinaryLogClient client) {
        System.out.println("end");
        System.out.flush();
        System.exit(0);
    }
}
