# The image of dragoman: one image, two programs: dra-driver, the default one, and dra-operator.
#
#   make wheels && docker build -t localhost/dragoman:dev .
#
# Nothing is downloaded by the build but the base image: `make wheels` has put our own wheel and those
# of requirements/image.txt, whose hashes pip compares once more, into dist/wheels. They fit the
# Python version of the default base; for another base: make wheels PYTHON_VERSION=3.12.
#
# Both stages start from the same base. So the virtual environment that the first one makes at
# /opt/dragoman finds its interpreter at the same path in the last one, whether that is
# /usr/local/bin/python3 (Docker's images) or /usr/bin/python3 (a Debian without pip and ensurepip).
ARG BASE_IMAGE=docker.io/library/python:3.13-slim-bookworm

FROM ${BASE_IMAGE} AS build
COPY image/pip.txt requirements/image.txt dist/wheels/ /wheels/
# pip runs from its wheel: a file that is hashed here and that the last stage never sees.
RUN set -eu; \
    umask 022; \
    python3 -m venv --without-pip /opt/dragoman; \
    wheel="$(echo /wheels/pip-*.whl)"; \
    hash="$(sed -n 's/.*--hash=sha256:\([0-9a-f]*\).*/\1/p' /wheels/pip.txt)"; \
    echo "$hash  $wheel" | sha256sum --check --quiet; \
    pip() { /opt/dragoman/bin/python3 "$wheel/pip" --isolated --no-cache-dir --disable-pip-version-check "$@"; }; \
    pip install --quiet --root-user-action=ignore --no-compile --no-index --find-links=/wheels \
        --only-binary=:all: --require-hashes -r /wheels/image.txt; \
    pip install --quiet --root-user-action=ignore --no-compile --no-index --no-deps \
        /wheels/dragoman-*.whl; \
    pip check; \
    rm -f /opt/dragoman/bin/activate* /opt/dragoman/bin/Activate*; \
    # Compiled now, since a container's root file system is read-only (a start takes 0.4 s instead of
    # 0.8 s), and trusted without a look at the source's time, which tools that build images may change.
    # Left out: thousands of the client's modules that nothing here imports, 60 MB; what is imported
    # of them is the list of models and three of those (by kopf). -f: pip has compiled what it uses.
    /opt/dragoman/bin/python3 -m compileall -qf --invalidation-mode unchecked-hash \
        -x '/kubernetes/(aio/|client/api/|client/models/(?!(__init__|v1_(managed_fields_entry|object_meta|owner_reference))\.py$))' \
        /opt/dragoman/lib

FROM ${BASE_IMAGE}
ENV PATH=/opt/dragoman/bin:/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin \
    # A module in the working directory never shadows one of ours or of Python's own.
    PYTHONSAFEPATH=1 \
    PYTHONUNBUFFERED=1 \
    # gRPC's handlers around fork cost time and we never fork.
    GRPC_ENABLE_FORK_SUPPORT=0
COPY --from=build /opt/dragoman /opt/dragoman
# The runs of the programs show that they start here, and compile what they need of a base whose
# standard library comes uncompiled. Programs with set-user-ID are of no use in here, and neither is
# a pip.
RUN set -eu; \
    dra-driver --help >/dev/null; \
    dra-operator --help >/dev/null; \
    rm -rf /usr/local/bin/pip* /usr/local/lib/python3*/site-packages/pip /usr/local/lib/python3*/site-packages/pip-*; \
    find / -xdev -type f -perm /6000 -exec chmod a-s {} +; \
    rm -rf /tmp/* /root/.cache
ENV PYTHONDONTWRITEBYTECODE=1
ARG VERSION=unversioned
LABEL org.opencontainers.image.title="dragoman" \
      org.opencontainers.image.description="Dynamic Resource Allocation for Kubernetes in Python" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
# Root, for the driver: the folders of the kubelet and of CDI belong to it. The operator runs as any
# other user. Neither needs a capability; drop them all.
WORKDIR /
ENTRYPOINT ["dra-driver"]
