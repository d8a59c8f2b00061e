package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

type object = map[string]any

const (
	vulnerability = "CVE-2026-1234"
	library       = "interop"
)

// importData imports data that the API of the platform can only read: a vulnerability, a library, and the scan report of
// an image. Imports are methods of this server only, so the SDK does not have them.
func (a *api) importData(ctx context.Context, group, repo string) error {
	report, err := json.Marshal(object{
		"descriptor": object{"name": "grype", "version": "1.0.0", "timestamp": "2026-01-01T00:00:00Z"},
		"matches": []object{{
			"vulnerability": object{"id": vulnerability, "severity": "High"},
			"artifact":      object{"name": library, "version": "1.0.0", "purl": "pkg:pypi/interop@1.0.0"},
		}},
	})
	if err != nil {
		return err
	}
	wheel := object{"name": "interop-1.0.0-py3-none-any.whl", "sizeBytes": 1000, "createTime": "2026-01-01T00:00:00Z"}
	imports := []struct {
		parent, name string
		body         object
	}{
		{group, "vulnerabilities", object{"vulnerabilities": []object{{"id": vulnerability, "summary": "interop"}}}},
		{group, "libraries/python", object{"versions": []object{{"name": library, "version": "1.0.0", "files": []object{wheel}}}}},
		{repo, "reports", object{"reports": []object{{"content": report, "digest": imageDigest()}}}},
	}
	for _, each := range imports {
		if err := a.post(ctx, each.body, "wharfinger/v1/imports", each.parent, each.name); err != nil {
			return fmt.Errorf("import of %s: %w", each.name, err)
		}
	}
	return nil
}

func (a *api) post(ctx context.Context, body object, path ...string) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	target, err := url.JoinPath(a.server, path...)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+a.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	responseBody, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, responseBody)
	}
	return err
}
