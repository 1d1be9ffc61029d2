package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"time"

	dracel "k8s.io/dynamic-resource-allocation/cel"
)

type benchInput struct {
	Devices     []device          `json:"devices"`
	Expressions []json.RawMessage `json:"expressions"`
}

type measured struct {
	ID           any     `json:"id,omitempty"`
	Expression   string  `json:"expression"`
	CompileError string  `json:"compileError,omitempty"`
	Compile      float64 `json:"compileMicroseconds"`
	Rate         float64 `json:"evaluationsPerSecond"`
	Matches      int     `json:"matches"`
	Attributes   int     `json:"attributes"`
	Errors       int     `json:"errors"`
}

// bench measures each expression of the file: the median of a few compilations as the scheduler
// does them, and evaluations over all devices, each with building its maps.
func bench(rounds int, file string, output io.Writer) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var input benchInput
	if err := json.Unmarshal(raw, &input); err != nil {
		return err
	}
	var devices []dracel.Device
	for _, d := range input.Devices {
		converted, err := d.input()
		if err != nil {
			return err
		}
		devices = append(devices, converted)
	}
	runtime.GOMAXPROCS(1)
	results := []measured{}
	for _, raw := range input.Expressions {
		q, err := asked(raw)
		if err != nil {
			return err
		}
		m, err := measure(q, devices, rounds)
		if err != nil {
			return err
		}
		results = append(results, m)
	}
	encoder := json.NewEncoder(output)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	return encoder.Encode(reply{"rounds": rounds, "devices": len(devices), "results": results})
}

// asked reads an expression: its text, or {"id", "kind", "expression"}.
func asked(raw json.RawMessage) (question, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return question{Expression: &text}, nil
	}
	var q question
	if err := json.Unmarshal(raw, &q); err != nil {
		return q, err
	}
	if q.Expression == nil {
		return q, fmt.Errorf("not an expression: %s", raw)
	}
	return q, nil
}

func measure(q question, devices []dracel.Device, rounds int) (measured, error) {
	const compilations = 7
	m := measured{ID: q.ID, Expression: *q.Expression}
	derived := q.Kind == "derived"
	var compiled dracel.CompilationResult
	times := make([]float64, compilations)
	for i := range times {
		begun := time.Now()
		var err error
		if compiled, err = compile(*q.Expression, derived, q.Env, false); err != nil {
			return m, err
		}
		times[i] = float64(time.Since(begun).Nanoseconds()) / 1e3
	}
	slices.Sort(times)
	m.Compile = times[compilations/2]
	if compiled.Error != nil {
		m.CompileError = compiled.Error.Detail
		return m, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	runtime.GC()
	begun := time.Now()
	for range rounds {
		m.Matches, m.Attributes, m.Errors = 0, 0, 0
		for _, d := range devices {
			if derived {
				if _, _, err := compiled.EvaluateDerivedAttribute(ctx, d); err != nil {
					m.Errors++
				} else {
					m.Attributes++
				}
				continue
			}
			if match, _, err := compiled.DeviceMatches(ctx, d); err != nil {
				m.Errors++
			} else if match {
				m.Matches++
			}
		}
	}
	m.Rate = float64(rounds*len(devices)) / time.Since(begun).Seconds()
	return m, nil
}
