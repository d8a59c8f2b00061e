// Interop drives a server the way programs written in Go do: grpc-go, dialled by the kit that the platform's own Go
// clients dial with, net/http for the token exchange over HTTP/1, and the CloudEvents SDK to receive events. What it
// knows of the API it learns from the server by reflection, so that nothing generated from our own contract can agree
// with itself.
package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"time"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := run(ctx, os.Getenv("WHARF_URL"), os.Getenv("WHARF_TOKEN"), os.Getenv("WHARF_ORG")); err != nil {
		fmt.Println("interop:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, address, token, org string) error {
	server, err := url.Parse(address)
	if err != nil {
		return err
	}
	stranger, err := dial(ctx, *server, "")
	if err != nil {
		return err
	}
	defer stranger.close()
	if err := ping(ctx, stranger); err != nil {
		return err
	}
	exchanged, err := exchange(ctx, *server, token)
	if err != nil {
		return err
	}
	api, err := dial(ctx, *server, exchanged)
	if err != nil {
		return err
	}
	defer api.close()

	all := resources()
	for _, each := range all {
		if err := each.walk(ctx, api, org); err != nil {
			return fmt.Errorf("%s: %w", each, err)
		}
	}
	fmt.Printf("interop: %d resources passed\n", len(all))
	heard, err := listen(ctx, api, org)
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	fmt.Printf("interop: %d events received and verified\n", heard)
	answered, err := restart(ctx, api)
	if err != nil {
		return fmt.Errorf("restart: %w", err)
	}
	fmt.Printf("interop: a restart went by, and %d calls that waited for it or ran beside it succeeded\n", answered)
	return nil
}

// ping asks without a token, under all three names.
func ping(ctx context.Context, api *client) error {
	for _, service := range []string{"ping.PingService", "ping.v2.PingService", "ping.v2beta1.PingService"} {
		answer, err := api.call(ctx, service, "Ping", nil)
		if err != nil {
			return fmt.Errorf("%s: %w", service, err)
		}
		if answer["response"] != "pong" {
			return fmt.Errorf("%s answers %v", service, answer)
		}
	}
	return nil
}
