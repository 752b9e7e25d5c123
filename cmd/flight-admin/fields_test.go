package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"contrail/descriptors"
)

// errorSource is what the source of package tableerr says of its types.
type errorSource struct {
	values map[string]string   // constants
	tokens map[string]string   // type to the constant of its token
	fields map[string][]string // type to the keys of its fields
}

// readErrorSource reads the package's files.
func readErrorSource(t *testing.T) errorSource {
	t.Helper()
	s := errorSource{map[string]string{}, map[string]string{}, map[string][]string{}}
	paths, err := filepath.Glob(filepath.Join("..", "..", "tablecore", "tableerr", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s.read(n)
			return true
		})
	}
	return s
}

func (s *errorSource) read(n ast.Node) {
	switch n := n.(type) {
	case *ast.ValueSpec:
		if len(n.Values) == 1 {
			if literal, ok := n.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
				s.values[n.Names[0].Name], _ = strconv.Unquote(literal.Value)
			}
		}
	case *ast.FuncDecl:
		if n.Recv == nil {
			return
		}
		star, ok := n.Recv.List[0].Type.(*ast.StarExpr)
		if !ok {
			return
		}
		name := star.X.(*ast.Ident).Name
		switch n.Name.Name {
		case "Token":
			s.tokens[name] = n.Body.List[0].(*ast.ReturnStmt).Results[0].(*ast.Ident).Name
		case "Fields":
			s.fields[name] = fieldKeys(n.Body)
		}
	}
}

// fieldKeys lists the keys of the literals Field{"key", …} in a method.
func fieldKeys(body *ast.BlockStmt) []string {
	var keys []string
	ast.Inspect(body, func(n ast.Node) bool {
		literal, ok := n.(*ast.CompositeLit)
		if !ok || len(literal.Elts) == 0 {
			return true
		}
		if key, ok := literal.Elts[0].(*ast.BasicLit); ok && key.Kind == token.STRING {
			text, _ := strconv.Unquote(key.Value)
			if !slices.Contains(keys, text) {
				keys = append(keys, text)
			}
		}
		return true
	})
	return keys
}

// The fields in the reference of errors are those that the types have.
func TestFieldsInTheErrorsPage(t *testing.T) {
	s := readErrorSource(t)
	seen := 0
	for typ, constant := range s.tokens {
		info, _ := descriptors.ErrorInfoOf(s.values[constant])
		got, want := slices.Sorted(slices.Values(s.fields[typ])), slices.Sorted(slices.Values(info.Fields))
		if len(got) == 0 {
			continue // none, or those of a type inside it
		}
		seen++
		if !slices.Equal(got, want) {
			t.Errorf("%s (%s) has the fields %v, the reference says %v", typ, info.Token, got, want)
		}
	}
	if seen < 15 {
		t.Errorf("only %d types were compared", seen)
	}
}
