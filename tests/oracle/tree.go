package main

import (
	"encoding/hex"
	"strconv"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
)

// node is one node of a checked tree. Children are named by their ids.
type node struct {
	ID        int64    `json:"id"`
	At        *int32   `json:"at,omitempty"`
	Kind      string   `json:"kind"`
	Type      string   `json:"type,omitempty"`
	Overloads []string `json:"overloads,omitempty"`
	// Reference is the name that an identifier was resolved to.
	Reference string `json:"reference,omitempty"`

	Constant string `json:"constant,omitempty"`
	Value    any    `json:"value,omitempty"`

	Name     string `json:"name,omitempty"`
	TestOnly bool   `json:"testOnly,omitempty"`
	Target   int64  `json:"target,omitempty"`

	Args     []int64 `json:"args,omitempty"`
	Optional []int32 `json:"optional,omitempty"`
	Entries  []entry `json:"entries,omitempty"`
	Loop     *loop   `json:"loop,omitempty"`
}

type entry struct {
	ID       int64  `json:"id"`
	Key      int64  `json:"key,omitempty"`
	Field    string `json:"field,omitempty"`
	Value    int64  `json:"value"`
	Optional bool   `json:"optional,omitempty"`
}

type loop struct {
	Range     int64  `json:"range"`
	Var       string `json:"var"`
	Var2      string `json:"var2,omitempty"`
	Accu      string `json:"accu"`
	Init      int64  `json:"init"`
	Condition int64  `json:"condition"`
	Step      int64  `json:"step"`
	Result    int64  `json:"result"`
}

// tree answers with the checked tree, or the error and what was parsed.
func tree(q question) reply {
	compiled, err := compile("true", false, q.Env, false)
	if err != nil {
		return reply{"error": "not a question: " + err.Error()}
	}
	env := compiled.Environment
	checked, issues := env.Compile(*q.Expression)
	if issues == nil {
		result := flatten(checked)
		result["outputType"] = checked.OutputType().String()
		return result
	}
	result := reply{}
	if parsed, issues := env.Parse(*q.Expression); issues.Err() == nil {
		result["parsed"] = flatten(parsed)
	}
	result["compileError"] = "compilation failed: " + issues.String()
	return result
}

func flatten(tree *cel.Ast) reply {
	w := walker{tree: tree.NativeRep()}
	w.walk(w.tree.Expr())
	return reply{"root": w.tree.Expr().ID(), "nodes": w.nodes}
}

type walker struct {
	tree  *ast.AST
	nodes []node
}

// walk appends e and then all below it, in the order of evaluation where there is one.
func (w *walker) walk(e ast.Expr) {
	n := node{ID: e.ID()}
	if offsets, found := w.tree.SourceInfo().GetOffsetRange(e.ID()); found {
		n.At = &offsets.Start
	}
	if t, found := w.tree.TypeMap()[e.ID()]; found {
		n.Type = t.String()
	}
	if reference, found := w.tree.ReferenceMap()[e.ID()]; found {
		n.Overloads = reference.OverloadIDs
		n.Reference = reference.Name
	}
	var below []ast.Expr
	switch e.Kind() {
	case ast.LiteralKind:
		n.Kind = "constant"
		n.Constant, n.Value = constant(e)
	case ast.IdentKind:
		n.Kind, n.Name = "ident", e.AsIdent()
	case ast.SelectKind:
		s := e.AsSelect()
		n.Kind, n.Name, n.TestOnly, n.Target = "select", s.FieldName(), s.IsTestOnly(), s.Operand().ID()
		below = append(below, s.Operand())
	case ast.CallKind:
		c := e.AsCall()
		n.Kind, n.Name = "call", c.FunctionName()
		if c.IsMemberFunction() {
			n.Target = c.Target().ID()
			below = append(below, c.Target())
		}
		n.Args = ids(c.Args())
		below = append(below, c.Args()...)
	case ast.ListKind:
		l := e.AsList()
		n.Kind, n.Args, n.Optional = "list", ids(l.Elements()), l.OptionalIndices()
		below = append(below, l.Elements()...)
	case ast.MapKind:
		n.Kind = "map"
		for _, item := range e.AsMap().Entries() {
			m := item.AsMapEntry()
			n.Entries = append(n.Entries, entry{
				ID: item.ID(), Key: m.Key().ID(), Value: m.Value().ID(), Optional: m.IsOptional(),
			})
			below = append(below, m.Key(), m.Value())
		}
	case ast.StructKind:
		n.Kind, n.Name = "struct", e.AsStruct().TypeName()
		for _, item := range e.AsStruct().Fields() {
			f := item.AsStructField()
			n.Entries = append(n.Entries, entry{
				ID: item.ID(), Field: f.Name(), Value: f.Value().ID(), Optional: f.IsOptional(),
			})
			below = append(below, f.Value())
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		n.Kind = "comprehension"
		n.Loop = &loop{
			Range: c.IterRange().ID(), Var: c.IterVar(), Var2: c.IterVar2(), Accu: c.AccuVar(),
			Init: c.AccuInit().ID(), Condition: c.LoopCondition().ID(), Step: c.LoopStep().ID(),
			Result: c.Result().ID(),
		}
		below = append(below, c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result())
	default:
		n.Kind = "unspecified"
	}
	w.nodes = append(w.nodes, n)
	for _, child := range below {
		w.walk(child)
	}
}

func ids(nodes []ast.Expr) []int64 {
	var found []int64
	for _, n := range nodes {
		found = append(found, n.ID())
	}
	return found
}

// constant is the type of a literal and its value: a text but for bool and null.
func constant(e ast.Expr) (string, any) {
	value := e.AsLiteral()
	name := value.Type().TypeName()
	switch v := value.(type) {
	case types.Bool:
		return name, bool(v)
	case types.String:
		return name, string(v)
	case types.Bytes:
		return name, hex.EncodeToString(v)
	case types.Int:
		return name, strconv.FormatInt(int64(v), 10)
	case types.Uint:
		return name, strconv.FormatUint(uint64(v), 10)
	case types.Double:
		return name, strconv.FormatFloat(float64(v), 'g', -1, 64)
	}
	return name, nil
}
