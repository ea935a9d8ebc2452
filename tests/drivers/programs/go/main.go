// Reads through pgx, in its modes of executing a query. talk.py describes the lines that it reads and writes.
package main

import (
	"bufio"
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
)

var modes = map[string]pgx.QueryExecMode{
	"cached statements":    pgx.QueryExecModeCacheStatement,
	"cached descriptions":  pgx.QueryExecModeCacheDescribe,
	"describe and execute": pgx.QueryExecModeDescribeExec,
	"execute":              pgx.QueryExecModeExec,
	"simple protocol":      pgx.QueryExecModeSimpleProtocol,
	"batch":                pgx.QueryExecModeCacheStatement,
}

type reader struct {
	mode       string
	connection *pgx.Conn
	out        *bufio.Writer
}

func (r *reader) open(words []string) error {
	address := url.URL{Scheme: "postgres", User: url.UserPassword(words[4], words[5]), Host: words[1] + ":" + words[2],
		Path: "/" + words[3], RawQuery: "sslmode=disable"}
	config, err := pgx.ParseConfig(address.String())
	if err != nil {
		return err
	}
	mode, known := modes[words[0]]
	if !known {
		return fmt.Errorf("no such mode: %s", words[0])
	}
	config.DefaultQueryExecMode = mode
	r.mode = words[0]
	r.connection, err = pgx.ConnectConfig(context.Background(), config)
	return err
}

func (r *reader) read(words []string) error {
	parameters := make([]any, 0, len(words))
	for _, word := range words[1:] {
		parameters = append(parameters, word)
	}
	if r.mode == "batch" {
		batch := &pgx.Batch{}
		batch.Queue("SET application_name = 'dashboard'")
		batch.Queue(words[0], parameters...)
		results := r.connection.SendBatch(context.Background(), batch)
		defer results.Close()
		if _, err := results.Exec(); err != nil {
			return err
		}
		rows, err := results.Query()
		return r.print(rows, err)
	}
	rows, err := r.connection.Query(context.Background(), words[0], parameters...)
	return r.print(rows, err)
}

func (r *reader) print(rows pgx.Rows, err error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		fmt.Fprint(r.out, "row")
		// The bytes of the protocol: nothing of a value is lost, whatever type of Go would stand for it.
		for _, value := range rows.RawValues() {
			if value == nil {
				fmt.Fprint(r.out, " -")
			} else {
				fmt.Fprintf(r.out, " =%x", value)
			}
		}
		fmt.Fprintln(r.out)
	}
	return rows.Err()
}

func (r *reader) answer(words []string) error {
	switch words[0] {
	case "open":
		return r.open(words[1:])
	case "read":
		return r.read(words[1:])
	default:
		return r.connection.Close(context.Background())
	}
}

func main() {
	r := &reader{out: bufio.NewWriter(os.Stdout)}
	requests := bufio.NewScanner(os.Stdin)
	requests.Buffer(nil, 1<<20)
	for requests.Scan() {
		words := strings.Split(requests.Text(), " ")
		for i, word := range words {
			words[i], _ = url.QueryUnescape(word)
		}
		if err := r.answer(words); err != nil {
			fmt.Fprintln(r.out, "failed", url.QueryEscape(err.Error()))
		} else {
			fmt.Fprintln(r.out, "done")
		}
		r.out.Flush()
	}
}
