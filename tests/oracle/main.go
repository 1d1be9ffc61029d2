// Command oracle answers CEL expressions over one device as Kubernetes does.
//
// It reads one JSON object a line and writes one JSON object a line, in the same order. README.md
// has the formats. With -ast the checked tree is written instead of the answer; with -bench the
// time of each expression of a file is measured.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
)

// question is one line of input.
type question struct {
	ID         any        `json:"id"`
	Kind       string     `json:"kind"`
	Expression *string    `json:"expression"`
	Device     device     `json:"device"`
	Env        *envChoice `json:"env"`
}

type reply = map[string]any

func main() {
	trees := flag.Bool("ast", false, "write checked trees instead of answers")
	repeat := flag.Int("repeat", 1, "evaluate up to this many times and list other answers")
	dry := flag.Bool("estimate", false, "compile and estimate without evaluating")
	flag.DurationVar(&deadline, "deadline", deadline, "the end of one evaluation")
	rounds := flag.Int("bench", 0, "measure with this many rounds over the devices of the file given as argument")
	list := flag.Bool("declarations", false, "write the overloads of all functions and end")
	flag.Parse()
	var err error
	if *list {
		err = declarations(os.Stdout)
	} else {
		err = run(*trees, *dry, *repeat, *rounds, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(trees, dry bool, repeat, rounds int, arguments []string) error {
	if rounds > 0 {
		if len(arguments) != 1 {
			return fmt.Errorf("-bench needs one file")
		}
		return bench(rounds, arguments[0], os.Stdout)
	}
	if dry {
		repeat = 0
	}
	answerTo := func(q question) reply { return answer(q, repeat) }
	if trees {
		answerTo = tree
	}
	return serve(os.Stdin, os.Stdout, answerTo)
}

// serve answers every line; an answer is written at once when no further line waits.
func serve(input io.Reader, output io.Writer, answerTo func(question) reply) error {
	in := bufio.NewReaderSize(input, 1<<20)
	out := bufio.NewWriter(output)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for {
		line, err := in.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			if err := encoder.Encode(answerLine(line, answerTo)); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return out.Flush()
		}
		if err != nil {
			return err
		}
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

func answerLine(line []byte, answerTo func(question) reply) (result reply) {
	var q question
	defer func() {
		if reason := recover(); reason != nil {
			result = reply{"panic": fmt.Sprint(reason)}
		}
		result["id"] = q.ID
	}()
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	decoder.UseNumber()
	if err := decoder.Decode(&q); err != nil {
		return reply{"error": "not a question: " + err.Error()}
	}
	if q.Expression == nil {
		return reply{"error": "not a question: no expression"}
	}
	if q.Kind != "selector" && q.Kind != "derived" && q.Kind != "" {
		return reply{"error": fmt.Sprintf("not a question: kind %q", q.Kind)}
	}
	return answerTo(q)
}
