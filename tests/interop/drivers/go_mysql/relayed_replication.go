package replication

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
)

// isWritten says whether the test that runs has executed all of its statements.
var isWritten atomic.Bool

// ask asks the server, also where streams come from a relay.
func (b *BinlogSyncer) ask(query string) (*mysql.Result, error) {
	address := net.JoinHostPort(b.cfg.Host, strconv.Itoa(int(b.cfg.Port)))
	c, err := client.Connect(address, b.cfg.User, b.cfg.Password, "")
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Execute(query)
}

// askSource asks who sends the streams: replicas register there.
func (b *BinlogSyncer) askSource(query string) (*mysql.Result, error) {
	c, err := b.newConnection(context.Background())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Execute(query)
}

// GTIDsAt returns the GTIDs that the server logged before a position in its files.
func (b *BinlogSyncer) GTIDsAt(pos mysql.Position) (mysql.GTIDSet, error) {
	if pos.Name == "" {
		return mysql.ParseMariadbGTIDSet("")
	}
	r, err := b.ask(fmt.Sprintf("SELECT BINLOG_GTID_POS('%s', %d)", pos.Name, pos.Pos))
	if err != nil {
		return nil, err
	}
	gtids, err := r.GetString(0, 0)
	if err != nil {
		return nil, err
	}
	return mysql.ParseMariadbGTIDSet(gtids)
}

// startAfter starts at the GTIDs of a position in the server's files: a relay has files of its own.
func (b *BinlogSyncer) startAfter(pos mysql.Position) (*BinlogStreamer, error) {
	set, err := b.GTIDsAt(pos)
	if err != nil {
		return nil, err
	}
	b.cfg.Flavor = mysql.MariaDBFlavor
	b.parser.SetFlavor(mysql.MariaDBFlavor)
	return b.StartSyncGTID(set)
}

// waitForFile waits until the stream has named its file, with which it begins.
func (b *BinlogSyncer) waitForFile() {
	for b.nextPos.Name == "" && !b.isClosed() {
		time.Sleep(10 * time.Millisecond)
	}
}

// hasAll says whether the test has executed its statements and the stream has brought what the server logged of them.
func (b *BinlogSyncer) hasAll() bool {
	if !isWritten.Load() {
		return false
	}
	r, err := b.ask("SHOW MASTER STATUS")
	if err != nil {
		return false
	}
	name, _ := r.GetString(0, 0)
	offset, _ := r.GetInt(0, 1)
	end := mysql.Position{Name: name, Pos: uint32(offset)}
	if !client.IsRelayed() {
		return b.nextPos.Compare(end) >= 0
	}
	logged, err := b.GTIDsAt(end)
	return err == nil && b.currGset != nil && b.currGset.Contain(logged)
}
