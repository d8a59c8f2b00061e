// Command compose-config prints the compose file of the working directory with its variables filled in, as
// "docker compose config" does, with the library that docker compose uses. Invalid files are errors.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	options, err := cli.NewProjectOptions(
		[]string{"compose.yaml"}, cli.WithOsEnv, cli.WithEnvFiles(), cli.WithDotEnv, cli.WithConsistency(true))
	if err != nil {
		return err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return err
	}
	text, err := project.MarshalYAML()
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}
