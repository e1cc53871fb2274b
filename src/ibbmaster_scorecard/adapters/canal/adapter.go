// Follows a primary with go-mysql's canal, which reconnects by itself and asks the primary for its tables.
package main

import (
	"net"
	"strconv"
	"time"

	"github.com/go-mysql-org/go-mysql/canal"
	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

func main() {
	sayVersion("go-mysql canal")
	given := readOptions()
	config := canal.NewDefaultConfig()
	config.Addr = net.JoinHostPort(given.Host, strconv.Itoa(int(given.Port)))
	config.User, config.Password, config.TLSConfig = given.User, given.Password, given.tlsConfig()
	config.Flavor, config.ServerID = mysql.MariaDBFlavor, given.ServerID
	config.HeartbeatPeriod, config.ReadTimeout = heartbeatPeriod, readTimeout
	config.TimestampStringLocation = time.UTC
	config.Dump.ExecutionPath = "" // no mysqldump: only what is logged
	follower, err := canal.NewCanal(config)
	if err != nil {
		stop(err)
	}
	follower.SetEventHandler(&handler{options: given})
	if err := follower.StartFromGTID(given.position()); err != nil {
		stop(err)
	}
}

type handler struct {
	canal.DummyEventHandler
	options
	gtid   string // of the group
	hasXID bool   // whether XID ends it, else a statement does
}

func (h *handler) OnGTID(header *replication.EventHeader, event mysql.BinlogGTIDEvent) error {
	h.pause()
	set, err := event.GTIDNext()
	if err == nil {
		h.gtid, h.hasXID = set.String(), false
		if mariadb, ok := event.(*replication.MariadbGTIDEvent); ok {
			h.hasXID = mariadb.Flags&replication.BINLOG_MARIADB_FL_TRANSACTIONAL != 0
		}
		say(line{"event": "begin", "gtid": h.gtid})
	}
	return err
}

func (h *handler) OnRow(event *canal.RowsEvent) error {
	h.pause()
	columns := event.Table.Columns
	names, types := make([]string, len(columns)), make([]string, len(columns))
	for i, column := range columns {
		names[i], types[i] = column.Name, column.RawType
	}
	if h.Tables {
		key := make([]string, len(event.Table.PKColumns))
		for i, column := range event.Table.PKColumns {
			key[i] = names[column]
		}
		table := event.Table.Schema + "." + event.Table.Name
		say(line{"event": "table", "table": table, "columns": names, "key": key, "types": types})
	}
	rows := make([]any, len(event.Rows))
	for n, row := range event.Rows {
		values := make([]any, len(row))
		for i, value := range row {
			if i < len(columns) {
				value = printable(value, columns[i].EnumValues, columns[i].SetValues)
			}
			values[i] = value
		}
		rows[n] = image(values, names, nil)
	}
	sayRows(event.Table.Schema+"."+event.Table.Name, event.Action, rows)
	return nil
}

func (h *handler) OnDDL(header *replication.EventHeader, next mysql.Position, event *replication.QueryEvent) error {
	h.pause()
	say(line{"event": "statement", "sql": text(string(event.Query))})
	return nil
}

func (h *handler) OnXID(header *replication.EventHeader, next mysql.Position) error {
	h.pause()
	say(line{"event": "commit", "gtid": h.gtid})
	return nil
}

// OnPosSynced comes behind XID, behind statements, and with another file: this position may be kept.
func (h *handler) OnPosSynced(header *replication.EventHeader, pos mysql.Position, set mysql.GTIDSet, force bool) error {
	if header != nil && header.EventType == replication.QUERY_EVENT && !h.hasXID {
		say(line{"event": "commit", "gtid": h.gtid})
	}
	if set != nil {
		say(line{"event": "position", "position": set.String()})
	}
	return nil
}
