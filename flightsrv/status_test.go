package flightsrv

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"contrail/tablecore/tableerr"
)

// tokensOf reads the error types of package tableerr from its source: for each
// type with a method Token, the token it returns.
func tokensOf(t *testing.T) map[string]tableerr.Token {
	t.Helper()
	values := map[string]string{} // of the constants
	returned := map[string]string{}
	paths, err := filepath.Glob(filepath.Join("..", "tablecore", "tableerr", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, src, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				if len(n.Values) == 1 {
					if literal, ok := n.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
						values[n.Names[0].Name], _ = strconv.Unquote(literal.Value)
					}
				}
			case *ast.FuncDecl:
				if n.Recv == nil || n.Name.Name != "Token" {
					return true
				}
				receiver := n.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name
				returned[receiver] = n.Body.List[0].(*ast.ReturnStmt).Results[0].(*ast.Ident).Name
			}
			return true
		})
	}
	tokens := map[string]tableerr.Token{}
	for typ, name := range returned {
		value, ok := values[name]
		if !ok {
			t.Fatalf("the token %s of *%s has no constant", name, typ)
		}
		tokens[typ] = tableerr.Token(value)
	}
	return tokens
}

// Every error type of the core has a status code, every code an Arrow status,
// and the map names no token that nothing returns.
func TestEveryErrorIsMapped(t *testing.T) {
	tokens := tokensOf(t)
	if len(tokens) < 20 {
		t.Fatalf("found only %d error types", len(tokens))
	}
	known := map[tableerr.Token]bool{}
	for typ, token := range tokens {
		known[token] = true
		code, ok := codeOf[token]
		if !ok {
			t.Errorf("*tableerr.%s (%s) has no status code", typ, token)
		}
		if arrowStatusOf[code] == 0 {
			t.Errorf("%s, the code of %s, has no Arrow status", code, token)
		}
	}
	for token := range codeOf {
		if !known[token] {
			t.Errorf("the code of %s is that of no error type", token)
		}
	}
}

// The bytes of wire-examples.md, section 2.
func TestFailureGolden(t *testing.T) {
	err := tableerr.WithTable(&tableerr.IntervalOverlap{ConflictCount: 2190, Entity: tableerr.Values{{Name: "origin", Value: "EWR"}},
		Interval: "[2013-01-01T06:00:00Z, 2013-01-01T07:00:00Z)", Version: 1}, "default.weather")
	f := failureOf(fmt.Errorf("append: %w", err))
	const message = `INTERVAL_OVERLAP table="default.weather" conflict_count=2190 entity={"origin":"EWR"} ` +
		`interval="[2013-01-01T06:00:00Z, 2013-01-01T07:00:00Z)" version=1: 2190 intervals of default.weather already hold a row`
	const detail = `{"token":"INTERVAL_OVERLAP","text":"2190 intervals of default.weather already hold a row","table":"default.weather",` +
		`"conflict_count":2190,"entity":{"origin":"EWR"},"interval":"[2013-01-01T06:00:00Z, 2013-01-01T07:00:00Z)","version":1}`
	if s := status.Convert(f.err()); s.Code() != codes.FailedPrecondition || s.Message() != message {
		t.Errorf("status %s %s", s.Code(), s.Message())
	}
	want := map[string]string{trailerToken: "INTERVAL_OVERLAP", trailerArrowStatus: "4", trailerArrowMessage: message, trailerDetail: detail}
	got := f.trailers()
	for key, value := range want {
		if !slices.Equal(got.Get(key), []string{value}) {
			t.Errorf("trailer %s is %q, want %q", key, got.Get(key), value)
		}
	}
	if len(got) != len(want) || f.serious() {
		t.Errorf("%d trailers, serious %v", len(got), f.serious())
	}
}

func TestFailureHidden(t *testing.T) {
	f := failureOf(errors.New("secret path"))
	if f.code != codes.Internal || f.token != tokenInternal || !f.serious() || len(f.incident) != 16 {
		t.Fatalf("got %+v", f)
	}
	for _, text := range append(slices.Concat(f.trailers()[trailerToken], f.trailers()[trailerDetail]), f.message) {
		if strings.Contains(text, "secret") {
			t.Errorf("%q tells the cause", text)
		}
	}
	if !strings.Contains(f.message, fmt.Sprintf("incident=%q", f.incident)) {
		t.Errorf("the message %q lacks the incident", f.message)
	}
	var detail map[string]string
	if err := json.Unmarshal(f.detail, &detail); err != nil || detail["incident"] != f.incident {
		t.Errorf("the detail is %s (%v)", f.detail, err)
	}
	if again := failureOf(errors.New("x")); again.incident == f.incident {
		t.Error("two incidents have one id")
	}
}

func TestFailureOfTransport(t *testing.T) {
	for _, c := range []struct {
		err  error
		want codes.Code
	}{
		{context.Canceled, codes.Canceled},
		{fmt.Errorf("read: %w", context.DeadlineExceeded), codes.DeadlineExceeded},
		{status.Error(codes.Unavailable, "transport is closing"), codes.Unavailable},
		{status.Error(codes.Unimplemented, "method DoExchange not implemented"), codes.Unimplemented},
		{status.Error(codes.PermissionDenied, "from somewhere below"), codes.Internal},
		{receiveError(status.Error(codes.Canceled, "context canceled"), 1), codes.Canceled},
		{receiveError(errors.New("broken pipe"), 1), codes.Canceled},
	} {
		f := failureOf(c.err)
		if f.code != c.want || (f.trailers() == nil) != (c.want != codes.Internal) {
			t.Errorf("%v becomes %+v, want %s", c.err, f, c.want)
		}
	}
}

func TestMessageTooLarge(t *testing.T) {
	text := "grpc: received message larger than max (70000000 vs. 67108864)"
	for _, c := range []struct {
		text  string
		bytes int64
	}{{text, 70000000}, {"grpc: received message after decompression larger than max 67108864", 0}} {
		err := receiveError(status.Error(codes.ResourceExhausted, c.text), 67108864)
		var large *tableerr.MessageTooLarge
		if !errors.As(err, &large) || large.LimitBytes != 67108864 || large.Bytes != c.bytes {
			t.Errorf("%q becomes %v", c.text, err)
		}
		if !strings.Contains(err.Error(), "max_receive_message_bytes") {
			t.Errorf("%q names no remedy", err)
		}
	}
	if err := receiveError(io.EOF, 1); err != io.EOF {
		t.Errorf("the end becomes %v", err)
	}
}

// Clients refuse more than 8 KiB of trailers.
func TestTrailersStaySmall(t *testing.T) {
	long := strings.Repeat("ß\x00", 4000)
	err := &tableerr.IntervalOverlap{About: tableerr.About{Table: long}, Interval: long, Entity: tableerr.Values{{Name: long, Value: long}}}
	f := failureOf(err)
	size := 0
	for key, values := range f.trailers() {
		n := len(values[0])
		if strings.HasSuffix(key, "-bin") {
			n = base64.StdEncoding.EncodedLen(n)
		}
		size += len(key) + n + 32
	}
	for _, r := range f.message {
		if r > '~' {
			size += 6
		}
		size++
	}
	if size > 6<<10 {
		t.Errorf("the trailers take %d bytes", size)
	}
}
