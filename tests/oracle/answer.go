package main

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/google/cel-go/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

const (
	// patience ends the repetitions of -repeat.
	patience = 300 * time.Millisecond
	// exactInDouble is the largest size of integers that every JSON reader keeps.
	exactInDouble = 1 << 53
)

// deadline ends one evaluation.
var deadline = 10 * time.Second

// envChoice picks the environment. Without one it is the scheduler's: stored, all features.
type envChoice struct {
	Type               string `json:"type"`
	ConsumableCapacity bool   `json:"consumableCapacity"`
	ListTypeAttributes bool   `json:"listTypeAttributes"`
}

func (c *envChoice) resolve() (dracel.Features, environment.Type, error) {
	all := dracel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true}
	if c == nil {
		return all, environment.StoredExpressions, nil
	}
	chosen := dracel.Features{
		EnableConsumableCapacity: c.ConsumableCapacity,
		EnableListTypeAttributes: c.ListTypeAttributes,
	}
	switch c.Type {
	case "new":
		return chosen, environment.NewExpressions, nil
	case "stored":
		return chosen, environment.StoredExpressions, nil
	}
	return chosen, "", fmt.Errorf("env.type %q", c.Type)
}

func compile(expression string, derived bool, choice *envChoice, estimate bool) (dracel.CompilationResult, error) {
	features, envType, err := choice.resolve()
	if err != nil {
		return dracel.CompilationResult{}, err
	}
	return dracel.GetCompiler(features).CompileCELExpression(expression, dracel.Options{
		EnvType:               &envType,
		DisableCostEstimation: !estimate,
		DerivedAttribute:      derived,
	}), nil
}

// answer compiles, estimates and evaluates; with repeat 0 it does not evaluate.
func answer(q question, repeat int) reply {
	derived := q.Kind == "derived"
	compiled, err := compile(*q.Expression, derived, q.Env, false)
	if err != nil {
		return reply{"error": "not a question: " + err.Error()}
	}
	if compiled.Error != nil {
		return reply{"compileError": compiled.Error.Detail, "errorType": string(compiled.Error.Type)}
	}
	input, err := q.Device.input()
	if err != nil {
		return reply{"error": "not a question: " + err.Error()}
	}
	result := reply{}
	if repeat > 0 {
		result = evaluate(compiled, input, derived)
	}
	if others := again(compiled, input, derived, repeat, result); len(others) > 0 {
		result["others"] = others
	}
	result["outputType"] = compiled.OutputType.String()
	if estimate, err := maxCost(q); err != nil {
		result["estimateError"] = err.Error()
	} else {
		result["maxCost"] = number(estimate)
	}
	return result
}

// maxCost is the static estimate, which the API server makes and the scheduler does not: an error
// or a panic in it says nothing about evaluations.
func maxCost(q question) (estimate uint64, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic: %v", reason)
		}
	}()
	compiled, err := compile(*q.Expression, q.Kind == "derived", q.Env, true)
	if err != nil {
		return 0, err
	}
	if compiled.Error != nil {
		return 0, fmt.Errorf("%s", compiled.Error.Detail)
	}
	return compiled.MaxCost, nil
}

// again evaluates up to repeat times in all and returns the answers that differ from the first: maps
// are visited in random order, and the cost of a search in one depends on it.
func again(compiled dracel.CompilationResult, input dracel.Device, derived bool, repeat int, first reply) []reply {
	known := []reply{first}
	begun := time.Now()
	for n := 1; n < repeat && time.Since(begun) < patience; n++ {
		other := evaluate(compiled, input, derived)
		isOther := func(r reply) bool { return reflect.DeepEqual(r, other) }
		if !slices.ContainsFunc(known, isOther) {
			known = append(known, other)
		}
	}
	return known[1:]
}

func evaluate(compiled dracel.CompilationResult, input dracel.Device, derived bool) reply {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	result := reply{}
	var details *cel.EvalDetails
	var err error
	if derived {
		attr, d, e := compiled.EvaluateDerivedAttribute(ctx, input)
		details, err = d, e
		if err == nil {
			result["attribute"] = short(attr)
		}
	} else {
		match, d, e := compiled.DeviceMatches(ctx, input)
		details, err = d, e
		result["match"] = match
	}
	if err != nil {
		delete(result, "match")
		result["evalError"] = err.Error()
	}
	if details != nil && details.ActualCost() != nil {
		result["cost"] = number(*details.ActualCost())
	}
	return result
}

// number is n, or its decimal text where a double would not hold it.
func number(n uint64) any {
	if n > exactInDouble {
		return strconv.FormatUint(n, 10)
	}
	return n
}
