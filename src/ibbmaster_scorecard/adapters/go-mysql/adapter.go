// Follows a primary with go-mysql's BinlogSyncer, which reconnects by itself.
package main

import (
	"context"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

func main() {
	sayVersion("go-mysql")
	given := readOptions()
	syncer := replication.NewBinlogSyncer(replication.BinlogSyncerConfig{
		ServerID: given.ServerID, Flavor: mysql.MariaDBFlavor,
		Host: given.Host, Port: given.Port, User: given.User, Password: given.Password, TLSConfig: given.tlsConfig(),
		HeartbeatPeriod: heartbeatPeriod, ReadTimeout: readTimeout,
		VerifyChecksum: true, TimestampStringLocation: time.UTC,
	})
	streamer, err := syncer.StartSyncGTID(given.position())
	if err != nil {
		stop(err)
	}
	gtid, isStandalone := "", false // of the group; whether it is one statement, and has no XID
	for {
		given.pause()
		event, err := streamer.GetEvent(context.Background())
		if err != nil {
			stop(err)
		}
		switch body := event.Event.(type) {
		case *replication.MariadbGTIDEvent:
			gtid, isStandalone = body.GTID.String(), body.IsStandalone()
			say(line{"event": "begin", "gtid": gtid})
		case *replication.RowsEvent:
			if given.Tables {
				sayTable(body.Table)
			}
			sayRows(string(body.Table.Schema)+"."+string(body.Table.Table), body.Type().String(), images(body))
		case *replication.QueryEvent:
			sql := string(body.Query)
			isEnd := sql == "COMMIT" || sql == "ROLLBACK"
			if !isEnd {
				say(line{"event": "statement", "sql": text(sql)})
			}
			if isEnd || isStandalone || strings.HasPrefix(sql, "XA COMMIT") || strings.HasPrefix(sql, "XA ROLLBACK") {
				sayCommit(gtid, body.GSet)
			}
		case *replication.XIDEvent:
			sayCommit(gtid, body.GSet)
		case *replication.GenericEvent:
			switch event.Header.EventType {
			case replication.XA_PREPARE_LOG_EVENT:
				sayCommit(gtid, nil)
			case replication.HEARTBEAT_EVENT, replication.STOP_EVENT:
			default:
				say(line{"event": "unknown", "text": event.Header.EventType.String()})
			}
		}
	}
}

// sayCommit ends a group, with the set of GTIDs that the library has at it.
func sayCommit(gtid string, set mysql.GTIDSet) {
	say(line{"event": "commit", "gtid": gtid})
	if set != nil {
		say(line{"event": "position", "position": set.String()})
	}
}

// sayTable tells what a table map knows of its table beside values.
func sayTable(table *replication.TableMapEvent) {
	told := line{"event": "table", "table": string(table.Schema) + "." + string(table.Table)}
	types := make([]int, len(table.ColumnType))
	for i, columnType := range table.ColumnType {
		types[i] = int(columnType)
	}
	told["types"] = types
	if names := table.ColumnNameString(); len(names) > 0 {
		key := make([]string, len(table.PrimaryKey))
		for i, column := range table.PrimaryKey {
			key[i] = names[column]
		}
		told["columns"], told["key"] = names, key
	}
	say(told)
}

// images are the rows of an event with what its table map knows: names, signs, and names of ENUM and SET values.
func images(event *replication.RowsEvent) []any {
	table := event.Table
	names, unsigned := table.ColumnNameString(), table.UnsignedMap()
	enums, sets := table.EnumStrValueMap(), table.SetStrValueMap()
	found := make([]any, len(event.Rows))
	for n, row := range event.Rows {
		values := make([]any, len(row))
		for i, value := range row {
			if unsigned[i] {
				value = withoutSign(value, table.ColumnType[i])
			}
			values[i] = printable(value, enums[i], sets[i])
		}
		found[n] = image(values, names, event.SkippedColumns[n])
	}
	return found
}

func withoutSign(value any, columnType byte) any {
	switch value := value.(type) {
	case int8:
		return uint8(value)
	case int16:
		return uint16(value)
	case int32:
		if columnType == mysql.MYSQL_TYPE_INT24 {
			return uint32(value) & 0xFFFFFF
		}
		return uint32(value)
	case int64:
		return uint64(value)
	}
	return value
}
