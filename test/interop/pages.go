package main

import (
	"context"
	"errors"
	"iter"
	"maps"
)

const (
	// pageSize is small, so that a few things make several pages.
	pageSize = 2
	maxPages = 1000
)

// pages yields the answers of a list of v2 until one has no token for the next, as the platform's iterators do: with a
// page size in every request, and with an end to patience.
func pages(ctx context.Context, api *client, service, method string, filter fields) iter.Seq2[fields, error] {
	return func(yield func(fields, error) bool) {
		request := maps.Clone(filter)
		request["pageSize"] = pageSize
		for range maxPages {
			answer, err := api.call(ctx, service, method, request)
			if !yield(answer, err) || err != nil {
				return
			}
			next, _ := answer["nextPageToken"].(string)
			if next == "" {
				return
			}
			request["pageToken"] = next
		}
		yield(nil, errors.New("the pages have no end"))
	}
}
