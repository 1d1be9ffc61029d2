package main

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
)

type overload struct {
	Function string   `json:"function"`
	ID       string   `json:"id"`
	Member   bool     `json:"member"`
	Args     []string `json:"args"`
	Result   string   `json:"result"`
}

// declarations writes every overload of the scheduler's environment, one a line.
func declarations(output io.Writer) error {
	compiled, err := compile("true", false, nil, false)
	if err != nil {
		return err
	}
	var found []overload
	for _, function := range compiled.Environment.Functions() {
		for _, o := range function.OverloadDecls() {
			args := []string{}
			for _, t := range o.ArgTypes() {
				args = append(args, t.String())
			}
			found = append(found, overload{
				Function: function.Name(), ID: o.ID(), Member: o.IsMemberFunction(), Args: args,
				Result: o.ResultType().String(),
			})
		}
	}
	slices.SortFunc(found, func(a, b overload) int {
		return strings.Compare(a.Function+" "+a.ID, b.Function+" "+b.ID)
	})
	encoder := json.NewEncoder(output)
	encoder.SetEscapeHTML(false)
	for _, o := range found {
		if err := encoder.Encode(o); err != nil {
			return err
		}
	}
	return nil
}
