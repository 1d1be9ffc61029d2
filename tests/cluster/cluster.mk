# A real Kubernetes for tests; included by the Makefile, which sets PY (the Python of the venv).
#
#   NAME=main      which cluster                 NODE=1        with a real node (root)
#   VERSION=1.37.2 or 1.36.3                     GATES=A=true,B=false, all or none
#   ALL=1          take all clusters down        ARGS="get pods -A"

TESTCLUSTER := PYTHONPATH=tests/cluster $(PY) -m testcluster

.PHONY: cluster-build cluster-up cluster-down cluster-status kubectl

cluster-build: ## build Kubernetes, etcd and containerd from Go modules (TARGET=all, BACKGROUND=1)
	@$(TESTCLUSTER) build $(or $(TARGET),all) $(if $(BACKGROUND),--background)

cluster-up: ## start a cluster (NODE=1, VERSION=1.36.3, GATES=none, NAME=main)
	@$(TESTCLUSTER) up --name $(or $(NAME),main) $(if $(NODE),--node) $(if $(VERSION),--version $(VERSION)) $(if $(GATES),--gates $(GATES))

cluster-down: ## take it down and clear what a crash left (NAME=main, ALL=1)
	@$(TESTCLUSTER) down $(if $(ALL),--all,--name $(or $(NAME),main))

cluster-status: ## show what runs; fails unless all of it is alive
	@$(TESTCLUSTER) status

kubectl: ## run kubectl as administrator (ARGS="get pods -A", NAME=main)
	@$(TESTCLUSTER) kubectl --name $(or $(NAME),main) -- $(ARGS)
