// What both programs of go-mysql share: the line they are given, the lines they print, and values in them.
package main

import (
	"bufio"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

// The commands of go-mysql ask for a heartbeat after 60 s and give a connection up after 90 s without any; a test waits less.
const (
	heartbeatPeriod = 1 * time.Second
	readTimeout     = 5 * time.Second
)

type options struct {
	Host     string  `json:"host"`
	Port     uint16  `json:"port"`
	User     string  `json:"user"`
	Password string  `json:"password"`
	ServerID uint32  `json:"server_id"`
	TLS      bool    `json:"tls"`
	Start    string  `json:"start"`
	Resume   *string `json:"resume"`
	DelayMs  int     `json:"delay_ms"`
	Tables   bool    `json:"tables"`
}

// readOptions reads the one line on stdin; when stdin ends, so does the program.
func readOptions() options {
	stdin := bufio.NewReader(os.Stdin)
	line, err := stdin.ReadBytes('\n')
	var given options
	if err == nil {
		err = json.Unmarshal(line, &given)
	}
	if err != nil {
		stop(err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		os.Exit(0)
	}()
	return given
}

// position is where to go on: what was printed last, or where the first start is.
func (o options) position() mysql.GTIDSet {
	text := o.Start
	if o.Resume != nil {
		text = *o.Resume
	}
	set, err := mysql.ParseMariadbGTIDSet(text)
	if err != nil {
		stop(err)
	}
	return set
}

func (o options) tlsConfig() *tls.Config {
	if o.TLS {
		return &tls.Config{InsecureSkipVerify: true} // the certificate was made for this test
	}
	return nil
}

func (o options) pause() {
	time.Sleep(time.Duration(o.DelayMs) * time.Millisecond)
}

type line map[string]any

var printing sync.Mutex

func say(what line) {
	encoded, err := json.Marshal(what)
	if err != nil {
		encoded, _ = json.Marshal(line{"event": "error", "text": err.Error(), "is_fatal": false, "is_internal": true})
	}
	printing.Lock()
	defer printing.Unlock()
	_, _ = os.Stdout.Write(append(encoded, '\n'))
}

// stop tells the error that the library gave its user, and ends. The library catches its own panics, and gives them as errors.
func stop(err error) {
	text, _, _ := strings.Cut(err.Error(), "\n")
	say(line{"event": "error", "text": text, "is_fatal": true, "is_internal": strings.Contains(text, "panic ")})
	os.Exit(1)
}

func sayVersion(name string) {
	version := "unknown"
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, module := range build.Deps {
			if module.Path == "github.com/go-mysql-org/go-mysql" {
				version = module.Version
			}
		}
	}
	say(line{"event": "version", "text": name + " " + version + ", " + runtime.Version()})
}

// sayRows prints the changes of one row event, whose rows are images: of an update two each, of others one.
func sayRows(table, kind string, images []any) {
	for i := 0; i < len(images); i++ {
		change := line{"event": "change", "table": table, "kind": kind, "before": nil, "after": nil}
		switch kind {
		case replication.EnumRowsEventTypeInsert.String():
			change["after"] = images[i]
		case replication.EnumRowsEventTypeDelete.String():
			change["before"] = images[i]
		default:
			change["before"], change["after"] = images[i], images[i+1]
			i++
		}
		say(change)
	}
}

// image is a row as an object, or as a list where its columns have no names.
func image(values []any, names []string, skipped []int) any {
	if len(names) != len(values) {
		return values
	}
	named := line{}
	for i, value := range values {
		named[names[i]] = value
	}
	for _, i := range skipped { // not in this row image
		delete(named, names[i])
	}
	return named
}

// printable is a value as JSON has it: ENUM and SET by their names, text as text, other bytes as digits.
func printable(value any, enum, set []string) any {
	switch value := value.(type) {
	case []byte:
		return text(string(value))
	case string:
		return text(value)
	case int64:
		if enum != nil {
			if value < 1 || int(value) > len(enum) {
				return "" // what MariaDB has for a value that is none
			}
			return enum[value-1]
		}
		if set != nil {
			chosen := []string{}
			for bit, name := range set {
				if value>>bit&1 == 1 {
					chosen = append(chosen, name)
				}
			}
			return strings.Join(chosen, ",")
		}
	}
	return value
}

func text(value string) string {
	if utf8.ValidString(value) {
		return value
	}
	return "0x" + hex.EncodeToString([]byte(value))
}
