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

// fields is a message in JSON.
type fields = map[string]any

// client calls any method of a server by its name.
type client struct {
	conn    *grpc.ClientConn
	schemas *grpcreflect.Client
	server  url.URL
	token   string
}

// dial connects as the platform's Go clients do: plaintext for http, TLS for https, waiting until the server is there.
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

// call sends request to a method of a service, which is named without chainguard.platform.
func (c *client) call(ctx context.Context, service, method string, request fields, opts ...grpc.CallOption) (fields, error) {
	found, err := c.schemas.ResolveService("chainguard.platform." + service)
	if err != nil {
		return nil, err
	}
	desc := found.UnwrapService().Methods().ByName(protoreflect.Name(method))
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
	answer, err := protojson.Marshal(out)
	if err != nil {
		return nil, err
	}
	told := fields{}
	return told, json.Unmarshal(answer, &told)
}

// bearer goes over plaintext too, as the platform's clients let it.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

func (bearer) RequireTransportSecurity() bool { return false }
