// Reads a result as Arrow, batch by batch, with pgx and arrow-go. The connection is that of PGHOST, PGUSER, … or DATABASE_URL.
//
//	go run . "SELECT * FROM sales"
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/jackc/pgx/v5"
)

func main() {
	ctx := context.Background()
	connection, err := pgx.Connect(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer connection.Close(ctx)

	stream, sink := io.Pipe()
	go func() {
		_, err := connection.PgConn().CopyTo(ctx, sink, "COPY ("+os.Args[1]+") TO STDOUT (FORMAT arrow)")
		sink.CloseWithError(err)
	}()
	reader, err := ipc.NewReader(stream)
	if err != nil {
		log.Fatal(err)
	}
	defer reader.Release()
	for reader.Next() {
		batch := reader.RecordBatch()
		for column, field := range batch.Schema().Fields() {
			fmt.Println(field.Name, batch.Column(column))
		}
	}
	// An error of the server in the middle of the result arrives here.
	if err := reader.Err(); err != nil {
		log.Fatal(err)
	}
}
