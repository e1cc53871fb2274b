package client

import (
	"net"
	"os"
	"regexp"
)

// words has statements that the tests make for MySQL 8.4, and what MariaDB is told instead.
var words = []struct {
	theirs *regexp.Regexp
	ours   string
}{
	{regexp.MustCompile(`^SHOW BINARY LOG STATUS$`), "SHOW MASTER STATUS"},
	{regexp.MustCompile(`^SHOW REPLICAS$`), "SHOW SLAVE HOSTS"},
	{regexp.MustCompile(`^RESET BINARY LOGS AND GTIDS$`), "RESET MASTER"},
	{regexp.MustCompile(`^SET SESSION binlog_row_value_options = .*`), "DO 0"},
	{regexp.MustCompile(`\bCAST\((ST_GeomFromText\('[^']*'\)) AS JSON\)`), "ST_AsGeoJSON($1)"},
	{regexp.MustCompile(`\bAS JSON\b`), "AS CHAR CHARACTER SET latin1"},
	{regexp.MustCompile(`\bJSON\b`), "LONGTEXT"},
}

func inWordsOfMariaDB(query string) string {
	for _, one := range words {
		query = one.theirs.ReplaceAllString(query, one.ours)
	}
	return query
}

// IsRelayed says whether streams come from a relay of the server.
func IsRelayed() bool { return os.Getenv("RELAY") != "" }

// ServerOf returns where the server is that the tests expect at an address. Other addresses stay as they are.
func ServerOf(address string) string {
	if _, port, _ := net.SplitHostPort(address); port == "3306" || port == "3316" {
		return os.Getenv("SERVER")
	}
	return address
}

// StreamsOf returns where the streams of the server come from that the tests expect at an address.
func StreamsOf(address string) string {
	if IsRelayed() {
		return os.Getenv("RELAY")
	}
	return ServerOf(address)
}
