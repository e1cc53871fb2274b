// Talks to a primary with go-mysql: `ask` sends the statements that stand in the input, `dump` follows it with
// BinlogSyncer, `canal` with canal, `canal-at` with canal by file and position. What comes is printed, a line each.
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/canal"
	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	what, host, port, user, password := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	switch what {
	case "ask":
		ask(host+":"+port, user, password)
	case "dump":
		dump(host, port, user, password, os.Args[6], os.Args[7])
	case "canal":
		follow(host+":"+port, user, password, os.Args[6], os.Args[7])
	case "canal-at":
		followAt(host+":"+port, user, password, os.Args[6], os.Args[7])
	}
}

func ask(address, user, password string) {
	connection, err := client.Connect(address, user, password, "")
	check(err)
	check(connection.Ping())
	_, err = connection.Execute("SET NAMES utf8mb4")
	check(err)
	fmt.Println("connected")
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		if strings.TrimSpace(input.Text()) == "" {
			continue
		}
		fmt.Printf("%s\t%s\n", input.Text(), answer(connection, input.Text()))
	}
	check(connection.Begin())
	check(connection.Rollback())
	check(connection.Close())
}

func answer(connection *client.Conn, sql string) string {
	result, err := connection.Execute(sql)
	if err != nil {
		if known, ok := err.(*mysql.MyError); ok {
			return fmt.Sprintf("ERROR\t%d", known.Code)
		}
		if known := mysql.ErrorCode(err.Error()); known != 0 {
			return fmt.Sprintf("ERROR\t%d", known)
		}
		return "ERROR\t" + err.Error()
	}
	if result.Resultset == nil || len(result.Fields) == 0 {
		return "OK"
	}
	lines := []string{"ROWS"}
	for i := range result.Values {
		var values []string
		for j := range result.Fields {
			if isNull, _ := result.IsNull(i, j); isNull {
				values = append(values, "null")
				continue
			}
			value, err := result.GetString(i, j)
			check(err)
			values = append(values, value)
		}
		lines = append(lines, strings.Join(values, "|"))
	}
	return strings.Join(lines, "\t")
}

func dump(host, port, user, password, start, last string) {
	number, err := strconv.Atoi(port)
	check(err)
	syncer := replication.NewBinlogSyncer(replication.BinlogSyncerConfig{
		ServerID: 7002, Flavor: "mariadb", Host: host, Port: uint16(number), User: user, Password: password,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	set, err := mysql.ParseMariadbGTIDSet(start)
	check(err)
	streamer, err := syncer.StartSyncGTID(set)
	check(err)
	isLast := false
	for {
		event, err := streamer.GetEvent(context.Background())
		check(err)
		switch body := event.Event.(type) {
		case *replication.MariadbGTIDEvent:
			if isLast {
				fmt.Println("end")
				return
			}
			// The first GTID of a domain is the syncer's own running set, and may show a later one: read the bytes.
			raw := event.RawData[replication.EventHeaderSize:]
			sequence, domain := binary.LittleEndian.Uint64(raw), binary.LittleEndian.Uint32(raw[8:])
			gtid := fmt.Sprintf("%d-%d-%d", domain, event.Header.ServerID, sequence)
			fmt.Println("gtid\t" + gtid)
			isLast = gtid == last
		case *replication.RowsEvent:
			fmt.Printf("rows\t%s.%s\t%d\n", body.Table.Schema, body.Table.Table, len(body.Rows))
		case *replication.XIDEvent, *replication.QueryEvent:
			if isLast {
				fmt.Println("end")
				return
			}
		}
	}
}

type handler struct {
	canal.DummyEventHandler
	end mysql.GTIDSet
}

func (h *handler) OnGTID(header *replication.EventHeader, event mysql.BinlogGTIDEvent) error {
	set, err := event.GTIDNext()
	if err == nil {
		fmt.Println("gtid\t" + set.String())
	}
	return nil
}

func (h *handler) OnTableChanged(header *replication.EventHeader, schema string, table string) error {
	fmt.Printf("changed\t%s.%s\n", schema, table)
	return nil
}

func (h *handler) OnRow(event *canal.RowsEvent) error {
	var names []string
	for _, column := range event.Table.Columns {
		names = append(names, fmt.Sprintf("%s %s %d", column.Name, column.RawType, column.Type))
	}
	fmt.Printf("%s\t%s\t%v\t%s\t", event.Action, event.Table.String(), event.Table.PKColumns, strings.Join(names, ", "))
	for _, row := range event.Rows {
		fmt.Printf("%q", fmt.Sprint(row))
	}
	fmt.Println()
	return nil
}

func (h *handler) OnPosSynced(header *replication.EventHeader, pos mysql.Position, set mysql.GTIDSet, force bool) error {
	if set != nil && set.Contain(h.end) {
		fmt.Println("end")
		os.Exit(0)
	}
	return nil
}

func newCanal(address, user, password string) *canal.Canal {
	config := canal.NewDefaultConfig()
	config.Addr, config.User, config.Password, config.Flavor = address, user, password, "mariadb"
	config.ServerID = 7003
	config.Dump.ExecutionPath = ""
	config.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	follower, err := canal.NewCanal(config)
	check(err)
	return follower
}

func follow(address, user, password, start, end string) {
	follower := newCanal(address, user, password)
	last, err := mysql.ParseMariadbGTIDSet(end)
	check(err)
	follower.SetEventHandler(&handler{end: last})
	set, err := mysql.ParseMariadbGTIDSet(start)
	check(err)
	check(follower.StartFromGTID(set))
}

type atHandler struct {
	canal.DummyEventHandler
}

func (h *atHandler) OnRow(event *canal.RowsEvent) error {
	for _, row := range event.Rows {
		fmt.Printf("%s\t%v\n", event.Action, row[0])
	}
	return nil
}

func (h *atHandler) OnPosSynced(header *replication.EventHeader, at mysql.Position, set mysql.GTIDSet, force bool) error {
	fmt.Printf("position\t%s\t%d\n", at.Name, at.Pos)
	return nil
}

// From the end of the primary where no file is named.
func followAt(address, user, password, file, position string) {
	follower := newCanal(address, user, password)
	follower.SetEventHandler(&atHandler{})
	start, err := follower.GetMasterPos()
	check(err)
	if file != "" {
		number, err := strconv.Atoi(position)
		check(err)
		start = mysql.Position{Name: file, Pos: uint32(number)}
	}
	check(follower.RunFrom(start))
}
