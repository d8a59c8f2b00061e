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

// stdin receives the replies of the process that runs this program and the server.
var stdin = bufio.NewScanner(os.Stdin)

// requestServer requests the parent process to stop or start the server, and waits until that is done.
func requestServer(action string) error {
	fmt.Println("request: " + action)
	if !stdin.Scan() || stdin.Text() != "done" {
		return fmt.Errorf("the parent process did not %s the server", action)
	}
	return nil
}

// testRestart has the server restarted. One call is made while the server is down, and must wait for it. Other calls are
// made all the time. They may fail with UNAVAILABLE only, which clients retry. It returns the number of successful calls.
func testRestart(ctx context.Context, api *client) (int, error) {
	list := func() error {
		_, err := api.call(ctx, "iam.Groups", "List", fields{})
		return err
	}
	if err := list(); err != nil {
		return 0, err
	}
	stop := make(chan struct{})
	background := make(chan outcome, 1)
	go func() { background <- repeat(list, stop) }()

	if err := requestServer("stop"); err != nil {
		return 0, err
	}
	for state := api.conn.GetState(); state != connectivity.TransientFailure; state = api.conn.GetState() {
		if !api.conn.WaitForStateChange(ctx, state) {
			return 0, errors.New("the connection did not fail after the server was stopped")
		}
	}
	waiting := make(chan error, 1)
	go func() { waiting <- list() }()
	select {
	case err := <-waiting:
		return 0, fmt.Errorf("a call did not wait for the server: %w", err)
	default:
	}
	if err := requestServer("start"); err != nil {
		return 0, err
	}
	if err := <-waiting; err != nil {
		return 0, err
	}
	close(stop)
	others := <-background
	return others.succeeded + 1, others.err
}

type outcome struct {
	succeeded int
	err       error
}

// repeat calls until stop is closed or a call fails with another code than UNAVAILABLE.
func repeat(call func() error, stop <-chan struct{}) outcome {
	succeeded := 0
	for {
		select {
		case <-stop:
			return outcome{succeeded, nil}
		default:
		}
		switch err := call(); status.Code(err) {
		case codes.OK:
			succeeded++
		case codes.Unavailable:
		default:
			return outcome{succeeded, err}
		}
	}
}
