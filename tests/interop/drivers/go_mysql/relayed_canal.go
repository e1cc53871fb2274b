package canal

import (
	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
)

// patience is by how much limits of time are longer than the tests have them: a machine may be busy.
const patience = 100

// hasReached says whether all is read that is before a position in the server's files. A relay has files of its own, and
// what was read of it is told by GTIDs.
func (c *Canal) hasReached(pos mysql.Position) bool {
	if !client.IsRelayed() {
		return c.master.Position().Compare(pos) >= 0
	}
	logged, err := c.syncer.GTIDsAt(pos)
	read, ofMariaDB := c.master.GTIDSet().(*mysql.MariadbGTIDSet)
	return err == nil && ofMariaDB && read.Contain(logged)
}
