module wharfinger.dev/test/interop/sdk

go 1.26.0

require chainguard.dev/sdk v0.1.55
