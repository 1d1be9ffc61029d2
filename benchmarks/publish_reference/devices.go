package main

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

// resources is one pool with a device for each serial, as full slices as the API allows.
func resources(node string, serials []int64) *resourceslice.DriverResources {
	pool := resourceslice.Pool{Slices: []resourceslice.Slice{{}}}
	if len(serials) > 0 {
		pool.Slices = nil
	}
	for first := 0; first < len(serials); first += resourceapi.ResourceSliceMaxDevices {
		last := min(first+resourceapi.ResourceSliceMaxDevices, len(serials))
		devices := make([]resourceapi.Device, 0, last-first)
		for index := first; index < last; index++ {
			devices = append(devices, device(index, serials[index]))
		}
		pool.Slices = append(pool.Slices, resourceslice.Slice{Devices: devices})
	}
	return &resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{node: pool}}
}

var memory = resource.MustParse("80Gi")

// device is the same as in publish_driver.py.
func device(index int, serial int64) resourceapi.Device {
	number, numa := int64(index), int64(index%2)
	model, uuid, version, ecc := "A100-SXM4", fmt.Sprintf("GPU-%06x", index), "550.54.1", true
	return resourceapi.Device{
		Name: fmt.Sprintf("gpu-%d", index),
		Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"model":         {StringValue: &model},
			"uuid":          {StringValue: &uuid},
			"driverVersion": {VersionValue: &version},
			"index":         {IntValue: &number},
			"numa":          {IntValue: &numa},
			"ecc":           {BoolValue: &ecc},
			"serial":        {IntValue: &serial},
		},
		Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: memory}},
	}
}
