// The OTLP receiver of the OpenTelemetry Collector on a free port. Prints its address, then one line of OTLP JSON for
// each export that it accepts.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
)

func main() {
	address := freeAddress()
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	config.GRPC = nil
	config.HTTP.ServerConfig.Endpoint = address

	marshaler := &ptrace.JSONMarshaler{}
	print, err := consumer.NewTraces(func(_ context.Context, traces ptrace.Traces) error {
		line, err := marshaler.MarshalTraces(traces)
		if err == nil {
			fmt.Println(string(line))
		}
		return err
	})
	check(err)

	settings := receiver.Settings{
		ID:                component.NewID(factory.Type()),
		TelemetrySettings: componenttest.NewNopTelemetrySettings(),
		BuildInfo:         component.NewDefaultBuildInfo(),
	}
	traces, err := factory.CreateTraces(context.Background(), settings, config, print)
	check(err)
	check(traces.Start(context.Background(), componenttest.NewNopHost()))
	fmt.Println(address)

	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, syscall.SIGTERM, syscall.SIGINT)
	<-stopped
	check(traces.Shutdown(context.Background()))
}

func freeAddress() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	defer listener.Close()
	return listener.Addr().String()
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
