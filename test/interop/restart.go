package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
)

var replies = bufio.NewScanner(os.Stdin)

// ask has whoever runs this program do something about the server, and waits until it is done.
func ask(what string) error {
	fmt.Println("please " + what)
	if !replies.Scan() || replies.Text() != "done" {
		return fmt.Errorf("nobody did: %s", what)
	}
	return nil
}

// restart has the server stopped and started again under the eyes of a client that waits for it. One call is made while
// there is no server, others all the time; none may fail but for UNAVAILABLE, which such clients try again.
func restart(ctx context.Context, api *client) (int, error) {
	list := func() error {
		_, err := api.call(ctx, "iam.Groups", "List", fields{})
		return err
	}
	if err := list(); err != nil {
		return 0, err
	}
	enough := make(chan struct{})
	beside := make(chan outcome, 1)
	go func() { beside <- again(list, enough) }()

	if err := ask("stop"); err != nil {
		return 0, err
	}
	for state := api.conn.GetState(); state != connectivity.TransientFailure; state = api.conn.GetState() {
		if !api.conn.WaitForStateChange(ctx, state) {
			return 0, errors.New("the server never seemed gone")
		}
	}
	waiting := make(chan error, 1)
	go func() { waiting <- list() }()
	select {
	case err := <-waiting:
		return 0, fmt.Errorf("a call did not wait for the server: %w", err)
	default:
	}
	if err := ask("start"); err != nil {
		return 0, err
	}
	if err := <-waiting; err != nil {
		return 0, err
	}
	close(enough)
	others := <-beside
	return others.answered + 1, others.err
}

type outcome struct {
	answered int
	err      error
}

// again calls until it is enough.
func again(call func() error, enough <-chan struct{}) outcome {
	answered := 0
	for {
		select {
		case <-enough:
			return outcome{answered, nil}
		default:
		}
		switch err := call(); status.Code(err) {
		case codes.OK:
			answered++
		case codes.Unavailable:
		default:
			return outcome{answered, err}
		}
	}
}
