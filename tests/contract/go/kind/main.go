// Command kind decodes the configuration of a kind cluster as kind itself does and prints it as JSON.
//
// The types are kind's own. Its decoder (pkg/internal/apis/config/encoding) cannot be imported; it is
// the YAML decoder below with KnownFields, so that an unknown field is an error. The patches for
// containerd are decoded as TOML by the package with which kind merges them.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/pelletier/go-toml"
	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kind/pkg/apis/config/defaults"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
)

type output struct {
	Cluster *v1alpha4.Cluster `json:"cluster"`
	// DefaultImage is the node image of this version of kind.
	DefaultImage string           `json:"defaultImage"`
	Containerd   []map[string]any `json:"containerd"`
}

func main() {
	raw, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = run(raw)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(raw []byte) error {
	cluster := &v1alpha4.Cluster{}
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	decoder.KnownFields(true)
	if err := decoder.Decode(cluster); err != nil {
		return fmt.Errorf("unable to decode config: %w", err)
	}
	if cluster.Kind != "Cluster" || cluster.APIVersion != "kind.x-k8s.io/v1alpha4" {
		return fmt.Errorf("unknown kind %q of apiVersion %q", cluster.Kind, cluster.APIVersion)
	}
	v1alpha4.SetDefaultsCluster(cluster)
	out := output{Cluster: cluster, DefaultImage: defaults.Image}
	for _, patch := range cluster.ContainerdConfigPatches {
		tree, err := toml.Load(patch)
		if err != nil {
			return fmt.Errorf("containerdConfigPatches: %w", err)
		}
		out.Containerd = append(out.Containerd, tree.ToMap())
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}
