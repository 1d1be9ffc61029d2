# The container image; included by the Makefile, which sets PY (the Python of the venv).
#
#   PYTHON_VERSION=3.13   for which Python of a base image `make wheels` collects
#   ARCH=x86_64           for which machine: x86_64 or aarch64 (this one)

DRIVER_IMAGE := PYTHONPATH=tests/cluster $(PY) -m testcluster.driver_image

.PHONY: wheels image

wheels: venv  ## Collect wheels in dist/wheels for `docker build` (PYTHON_VERSION=3.13, ARCH=x86_64)
	@$(DRIVER_IMAGE) wheels $(if $(PYTHON_VERSION),--python $(PYTHON_VERSION)) $(if $(ARCH),--arch $(ARCH))

image: venv  ## Build the container image without Docker (root, buildah); prints its OCI archive
	@$(DRIVER_IMAGE) build
