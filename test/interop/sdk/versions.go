package main

import (
	"context"
	"fmt"
	"iter"

	sdk "chainguard.dev/sdk/proto/chainguard/platform/iter"
	common "chainguard.dev/sdk/proto/platform/common/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/emptypb"
)

// pageSize is small, so that five resources fill several pages for the iterators of the SDK.
const pageSize int32 = 2

// rpc is a method of an SDK client.
type rpc[Request, Response proto.Message] = func(context.Context, Request, ...grpc.CallOption) (Response, error)

// v1Reader reads through v1, which has only lists.
func v1Reader[F proto.Message, L interface{ GetItems() []T }, T proto.Message](
	list func(context.Context, F, ...grpc.CallOption) (L, error), fields func(T) []any,
) versionClient[T] {
	items := func(ctx context.Context, filter F) ([]T, error) {
		found, err := list(ctx, filter)
		return found.GetItems(), err
	}
	return versionClient[T]{
		fields: fields,
		read: func(ctx context.Context, id string) (T, error) {
			found, err := items(ctx, requestByID[F](id))
			if err == nil && len(found) != 1 {
				err = fmt.Errorf("the list has %d resources with the id %s", len(found), id)
			}
			if err != nil {
				var none T
				return none, err
			}
			return found[0], nil
		},
		list: func(ctx context.Context, parent string) ([]T, error) { return items(ctx, listRequest[F](parent)) },
	}
}

// v2Reader reads through v2 or v2beta1, and lists with an iterator over all pages.
func v2Reader[G, L, T proto.Message](get rpc[G, T], list func(context.Context, L) iter.Seq2[T, error], fields func(T) []any) versionClient[T] {
	return versionClient[T]{
		fields: fields,
		read:   func(ctx context.Context, id string) (T, error) { return get(ctx, requestByID[G](id)) },
		list: func(ctx context.Context, parent string) ([]T, error) {
			return sdk.All(list(ctx, listRequest[L](parent)))
		},
	}
}

// withWrites adds create and delete to a client.
func withWrites[C, D, T proto.Message](c versionClient[T], create rpc[C, T], body func(parent string, n int) C, remove rpc[D, *emptypb.Empty]) versionClient[T] {
	c.createRequest = func(parent string, n int) proto.Message { return body(parent, n) }
	c.create = func(ctx context.Context, parent string, n int) (T, error) { return create(ctx, body(parent, n)) }
	c.remove = func(ctx context.Context, id string) error {
		_, err := remove(ctx, requestByID[D](id))
		return err
	}
	return c
}

// withUpdate adds update to a client. change modifies a resource that was read and returns the update request.
func withUpdate[U, T proto.Message](c versionClient[T], update rpc[U, T], change func(T) U) versionClient[T] {
	c.updateRequest = func(resource T) proto.Message { return change(resource) }
	c.update = func(ctx context.Context, resource T) (T, error) { return update(ctx, change(resource)) }
	return c
}

// requestByID builds a request that has only the id of a resource.
func requestByID[Q proto.Message](id string) Q {
	request, fields := newMessage[Q]()
	fields.Set(idField(fields), protoreflect.ValueOfString(id))
	return request
}

// listRequest builds the request for a list of the children of a parent. Some lists of v1 have only a filter by group.
func listRequest[Q proto.Message](parent string) Q {
	request, fields := newMessage[Q]()
	descriptors := fields.Descriptor().Fields()
	// In v1 the field has another type, and a list without a page size is complete.
	if size := descriptors.ByName("page_size"); size != nil && size.Kind() == protoreflect.Int32Kind {
		fields.Set(size, protoreflect.ValueOfInt32(pageSize))
	}
	if uidp := descriptors.ByName("uidp"); uidp != nil {
		children := &common.UIDPFilter{ChildrenOf: parent}
		fields.Set(uidp, protoreflect.ValueOfMessage(children.ProtoReflect()))
	} else {
		fields.Set(descriptors.ByName("group"), protoreflect.ValueOfString(parent))
	}
	return request
}

func newMessage[Q proto.Message]() (Q, protoreflect.Message) {
	var none Q
	fields := none.ProtoReflect().New()
	return fields.Interface().(Q), fields
}

func idOf(resource proto.Message) string {
	fields := resource.ProtoReflect()
	return fields.Get(idField(fields)).String()
}

// idField returns the field of the id: uid in v2, id in v1, and group for the account associations of v1.
func idField(fields protoreflect.Message) protoreflect.FieldDescriptor {
	for _, name := range []protoreflect.Name{"uid", "id", "group"} {
		if field := fields.Descriptor().Fields().ByName(name); field != nil {
			return field
		}
	}
	panic(fmt.Sprintf("%s has no id", fields.Descriptor().FullName()))
}
