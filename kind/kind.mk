# The driver in a kind cluster, for people with Docker; included by the Makefile. See kind/README.md.
#
#   KIND_CLUSTER=dragoman   KIND_IMAGE=kindest/node:v1.37.0   EXAMPLE=two-pods

export KIND_CLUSTER KIND_IMAGE EXAMPLE

.PHONY: kind-up kind-demo kind-down

kind-up:  ## Docker and kind: build the image, make a cluster, install the driver (KIND_IMAGE=…)
	@kind/kind.sh check
	@$(MAKE) --no-print-directory wheels
	@kind/kind.sh up

kind-demo: kind-up  ## Docker and kind: run an example there and show what its pods see (EXAMPLE=two-pods)
	@kind/kind.sh demo

kind-down:  ## Docker and kind: delete the cluster
	@kind/kind.sh down
