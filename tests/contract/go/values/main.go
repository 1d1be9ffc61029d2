// Command values answers questions about quantities and versions as Kubernetes does.
//
// It reads one JSON object a line and writes one JSON object a line. The questions:
//
//	{"quantity": "1.5Gi", "steps": [{"op": "add", "with": "1Ki"}, {"op": "mul", "by": 3}]}
//	{"decode": " 1Ki "}
//	{"compare": ["1Ki", "1k"]}
//	{"version": "1.2.3-rc.1"}
//	{"order": ["1.0.0", "1.0.0-rc"]}
//
// Texts that do not parse are answered with {"error": "..."}, calls that panic with
// {"panic": "..."}.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/blang/semver/v4"
	"gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"
)

type step struct {
	Op   string `json:"op"`
	With string `json:"with"`
	By   int64  `json:"by"`
}

type question struct {
	Quantity *string         `json:"quantity"`
	Steps    []step          `json:"steps"`
	Decode   json.RawMessage `json:"decode"`
	Compare  []string        `json:"compare"`
	Version  *string         `json:"version"`
	Order    []string        `json:"order"`
}

// fact is all that can be seen of a quantity.
type fact struct {
	Text   string `json:"text"`
	Format string `json:"format"`
	Value  int64  `json:"value"`
	Milli  int64  `json:"milli"`
	Sign   int    `json:"sign"`
	Zero   bool   `json:"zero"`
	Int64  *int64 `json:"int64"`
}

func look(q resource.Quantity) fact {
	f := fact{
		Text:   q.String(),
		Format: string(q.Format),
		Value:  q.Value(),
		Milli:  q.MilliValue(),
		Sign:   q.Sign(),
		Zero:   q.IsZero(),
	}
	if n, ok := q.AsInt64(); ok {
		f.Int64 = &n
	}
	return f
}

func apply(q resource.Quantity, s step) (resource.Quantity, error) {
	if s.Op == "neg" {
		q.Neg()
		return q, nil
	}
	if s.Op == "mul" {
		q.Mul(s.By)
		return q, nil
	}
	other, err := resource.ParseQuantity(s.With)
	if err != nil {
		return q, err
	}
	switch s.Op {
	case "add":
		q.Add(other)
	case "sub":
		q.Sub(other)
	case "times":
		product := new(inf.Dec).Mul(q.AsDec(), other.AsDec())
		q = *resource.NewDecimalQuantity(*product, q.Format)
	default:
		return q, fmt.Errorf("no operation %q", s.Op)
	}
	return q, nil
}

func quantities(text string, steps []step) (any, error) {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return nil, err
	}
	facts := []fact{look(q)}
	for _, s := range steps {
		if q, err = apply(q.DeepCopy(), s); err != nil {
			return nil, err
		}
		facts = append(facts, look(q.DeepCopy()))
	}
	return facts, nil
}

// decode reads one JSON value as a field of an API object; text is encoded the way Go clients do.
func decode(raw json.RawMessage) (any, error) {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, err
	}
	if text, ok := value.(string); ok {
		var err error
		if raw, err = json.Marshal(text); err != nil {
			return nil, err
		}
	}
	var q resource.Quantity
	if err := json.Unmarshal(raw, &q); err != nil {
		return nil, err
	}
	return q.String(), nil
}

func compare(texts []string) (any, error) {
	left, err := resource.ParseQuantity(texts[0])
	if err != nil {
		return nil, err
	}
	right, err := resource.ParseQuantity(texts[1])
	if err != nil {
		return nil, err
	}
	return left.Cmp(right), nil
}

func version(text string) (any, error) {
	v, err := semver.Parse(text)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"text":  v.String(),
		"major": v.Major,
		"minor": v.Minor,
		"patch": v.Patch,
		"pre":   len(v.Pre),
		"build": len(v.Build),
	}, nil
}

func order(texts []string) (any, error) {
	left, err := semver.Parse(texts[0])
	if err != nil {
		return nil, err
	}
	right, err := semver.Parse(texts[1])
	if err != nil {
		return nil, err
	}
	return left.Compare(right), nil
}

func answer(line []byte) (reply map[string]any) {
	defer func() {
		if reason := recover(); reason != nil {
			reply = map[string]any{"panic": fmt.Sprint(reason)}
		}
	}()
	var ask question
	if err := json.Unmarshal(line, &ask); err != nil {
		return map[string]any{"panic": "not a question: " + err.Error()}
	}
	var result any
	var err error
	switch {
	case ask.Quantity != nil:
		result, err = quantities(*ask.Quantity, ask.Steps)
	case ask.Decode != nil:
		result, err = decode(ask.Decode)
	case len(ask.Compare) == 2:
		result, err = compare(ask.Compare)
	case ask.Version != nil:
		result, err = version(*ask.Version)
	case len(ask.Order) == 2:
		result, err = order(ask.Order)
	default:
		return map[string]any{"panic": "not a question"}
	}
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return map[string]any{"result": result}
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for in.Scan() {
		if err := encoder.Encode(answer(in.Bytes())); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if err := in.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
