package main

import (
	"context"
	"fmt"
	"iter"
	"maps"
)

const (
	// pageSize is small, so that five resources fill several pages.
	pageSize = 2
	maxPages = 1000
)

// pages yields the pages of a v2 list, as the iterators of the platform do: each request has a page size, and the number
// of pages is limited.
func pages(ctx context.Context, api *client, service, method string, filter fields) iter.Seq2[fields, error] {
	return func(yield func(fields, error) bool) {
		request := maps.Clone(filter)
		request["pageSize"] = pageSize
		for range maxPages {
			page, err := api.call(ctx, service, method, request)
			if !yield(page, err) || err != nil {
				return
			}
			next, _ := page["nextPageToken"].(string)
			if next == "" {
				return
			}
			request["pageToken"] = next
		}
		yield(nil, fmt.Errorf("the list has more than %d pages", maxPages))
	}
}
