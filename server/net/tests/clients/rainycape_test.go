// What rainycape/memcache offers over the binary protocol, as its documentation shows.
package clients

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/rainycape/memcache"
)

func TestCalls(t *testing.T) {
	client, err := memcache.New(os.Getenv("MEMCACHED"))
	if err != nil {
		t.Fatal(err)
	}
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	fails := func(what string, err, wanted error) {
		t.Helper()
		if err != wanted {
			t.Fatalf("%s: %v instead of %v", what, err, wanted)
		}
	}
	must("set", client.Set(&memcache.Item{Key: "greeting", Value: []byte("hello"), Flags: 7, Expiration: 60}))
	item, err := client.Get("greeting")
	must("get", err)
	if string(item.Value) != "hello" || item.Flags != 7 {
		t.Fatalf("get: %q, flags %d", item.Value, item.Flags)
	}
	_, err = client.Get("absent")
	fails("get of what is not there", err, memcache.ErrCacheMiss)
	fails("add", client.Add(&memcache.Item{Key: "greeting", Value: []byte("x")}), memcache.ErrNotStored)
	must("add of a new one", client.Add(&memcache.Item{Key: "new", Value: []byte("x")}))
	other, err := client.Get("greeting")
	must("get", err)
	item.Value = []byte("changed")
	must("compare and swap", client.CompareAndSwap(item))
	other.Value = []byte("again")
	// It tells a conflict as one that was not stored.
	fails("compare and swap with an old number", client.CompareAndSwap(other), memcache.ErrNotStored)
	var keys []string
	for i := range 300 {
		key := fmt.Sprintf("many:%d", i)
		keys = append(keys, key)
		must("set", client.Set(&memcache.Item{Key: key, Value: []byte(key)}))
	}
	many, err := client.GetMulti(append(keys, "absent"))
	must("get of many", err)
	if len(many) != 300 || string(many["many:7"].Value) != "many:7" {
		t.Fatalf("get of many: %d", len(many))
	}
	must("set", client.Set(&memcache.Item{Key: "count", Value: []byte("10")}))
	count, err := client.Increment("count", 5)
	must("increment", err)
	if count != 15 {
		t.Fatalf("increment: %d", count)
	}
	count, err = client.Decrement("count", 20)
	must("decrement", err)
	if count != 0 {
		t.Fatalf("decrement: %d", count)
	}
	_, err = client.Increment("absent", 1)
	fails("increment of what is not there", err, memcache.ErrCacheMiss)
	must("delete", client.Delete("greeting"))
	fails("delete again", client.Delete("greeting"), memcache.ErrCacheMiss)
	large := bytes.Repeat([]byte("v"), 900000)
	must("set of a large value", client.Set(&memcache.Item{Key: "large", Value: large}))
	item, err = client.Get("large")
	must("get of a large value", err)
	if !bytes.Equal(item.Value, large) {
		t.Fatal("a large value has changed")
	}
	must("flush", client.Flush(0))
	_, err = client.Get("many:1")
	fails("get after a flush", err, memcache.ErrCacheMiss)
}
