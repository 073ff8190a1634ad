# A team's server on this machine: replicas that Ray keeps (docs/team.md). Ray is 500 MB, so only these targets install it.
CLUSTER_STAMP := $(VENV)/.cluster
REPLICAS ?= 2

.PHONY: cluster test-cluster capacity

$(CLUSTER_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[cluster]'
	@touch $@

cluster: $(CLUSTER_STAMP)
	$(BIN)/midspan serve --replicas $(REPLICAS) $(SERVE)

test-cluster: $(CLUSTER_STAMP)
	$(PYTEST) tests/engine/cluster

# How many people it carries; needs a quiet machine. CAPACITY=--docs puts the tables and the plot into docs/team.md.
capacity: $(CLUSTER_STAMP)
	$(BIN)/python benchmarks/scale/capacity.py $(CAPACITY)
