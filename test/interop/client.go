package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"chainguard.dev/go-grpc-kit/pkg/options"
	"github.com/jhump/protoreflect/grpcreflect"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// fields is a message as a JSON object.
type fields = map[string]any

// client calls methods of a server by name.
type client struct {
	conn    *grpc.ClientConn
	schemas *grpcreflect.Client
	server  url.URL
	token   string
}

// dial connects as the Go clients of the platform do: plaintext for http, TLS for https. Calls wait until the server is
// ready.
func dial(ctx context.Context, server url.URL, token string) (*client, error) {
	target, opts := options.GRPCOptions(server)
	if token != "" {
		opts = append(opts, grpc.WithPerRPCCredentials(bearer(token)))
	}
	conn, err := grpc.NewClient(target, opts...)
	if err != nil {
		return nil, err
	}
	return &client{conn, grpcreflect.NewClientAuto(ctx, conn), server, token}, nil
}

func (c *client) close() {
	c.schemas.Reset()
	_ = c.conn.Close()
}

// call sends request to a method of a service. The name of the service is relative to chainguard.platform.
func (c *client) call(ctx context.Context, service, method string, request fields, opts ...grpc.CallOption) (fields, error) {
	descriptor, err := c.schemas.ResolveService("chainguard.platform." + service)
	if err != nil {
		return nil, err
	}
	desc := descriptor.UnwrapService().Methods().ByName(protoreflect.Name(method))
	if desc == nil {
		return nil, fmt.Errorf("%s has no method %s", service, method)
	}
	in, out := dynamicpb.NewMessage(desc.Input()), dynamicpb.NewMessage(desc.Output())
	text, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	if request != nil {
		if err := protojson.Unmarshal(text, in); err != nil {
			return nil, err
		}
	}
	path := fmt.Sprintf("/chainguard.platform.%s/%s", service, method)
	if err := c.conn.Invoke(ctx, path, in, out, opts...); err != nil {
		return nil, err
	}
	body, err := protojson.Marshal(out)
	if err != nil {
		return nil, err
	}
	response := fields{}
	return response, json.Unmarshal(body, &response)
}

// bearer sends a token over plaintext too, as the clients of the platform allow.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

func (bearer) RequireTransportSecurity() bool { return false }
