package main

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// device is a device in the short form of the questions.
type device struct {
	Driver                   string               `json:"driver"`
	AllowMultipleAllocations *bool                `json:"allowMultipleAllocations"`
	Attributes               map[string]attribute `json:"attributes"`
	Capacity                 map[string]string    `json:"capacity"`
}

// attribute has exactly one field set, as in the API.
type attribute struct {
	String   *string  `json:"string,omitempty"`
	Int      *int64   `json:"int,omitempty"`
	Bool     *bool    `json:"bool,omitempty"`
	Version  *string  `json:"version,omitempty"`
	Strings  []string `json:"strings,omitzero"`
	Ints     []int64  `json:"ints,omitzero"`
	Bools    []bool   `json:"bools,omitzero"`
	Versions []string `json:"versions,omitzero"`
}

func (d device) input() (dracel.Device, error) {
	result := dracel.Device{
		Driver:                   d.Driver,
		AllowMultipleAllocations: d.AllowMultipleAllocations,
		Attributes:               map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{},
		Capacity:                 map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{},
	}
	for name, a := range d.Attributes {
		result.Attributes[resourceapi.QualifiedName(name)] = resourceapi.DeviceAttribute{
			StringValue:   a.String,
			IntValue:      a.Int,
			BoolValue:     a.Bool,
			VersionValue:  a.Version,
			StringValues:  a.Strings,
			IntValues:     a.Ints,
			BoolValues:    a.Bools,
			VersionValues: a.Versions,
		}
	}
	for name, text := range d.Capacity {
		value, err := resource.ParseQuantity(text)
		if err != nil {
			return result, fmt.Errorf("capacity %s: %w", name, err)
		}
		result.Capacity[resourceapi.QualifiedName(name)] = resourceapi.DeviceCapacity{Value: value}
	}
	return result, nil
}

func short(a *resourceapi.DeviceAttribute) attribute {
	return attribute{
		String:   a.StringValue,
		Int:      a.IntValue,
		Bool:     a.BoolValue,
		Version:  a.VersionValue,
		Strings:  a.StringValues,
		Ints:     a.IntValues,
		Bools:    a.BoolValues,
		Versions: a.VersionValues,
	}
}
