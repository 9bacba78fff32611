# Reading Room as a container: every base on port 8000, data in /data, nothing runs as root.
#   docker build -t readingroom . && docker run -e MCP_API_KEY=… -p 127.0.0.1:8000:8000 -v room:/data readingroom

# --- what is locked, and the project itself ---
FROM python:3.12-slim AS packages
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /src
RUN python -m venv /opt/readingroom
# The lock leaves out what the embedded use never imports, such as Chroma's Kubernetes client.
COPY requirements.lock ./
RUN /opt/readingroom/bin/pip install --no-deps --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN /opt/readingroom/bin/pip install --no-deps --no-build-isolation .
# For several processes on one PostgreSQL: docker build --build-arg POSTGRES=1 .
ARG POSTGRES=""
COPY requirements-postgres.lock ./
RUN if [ -n "$POSTGRES" ]; then \
    /opt/readingroom/bin/pip install --no-deps --require-hashes -r requirements-postgres.lock; fi

# --- the embedding model, ready to run: the first search does not wait for it ---
FROM packages AS model
RUN READINGROOM_MODELS_DIR=/opt/models /opt/readingroom/bin/readingroom model build --data /tmp/none

# --- what is shipped ---
FROM python:3.12-slim
# The distribution's own tesseract, at whatever version it has: an older one is not kept there.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends tesseract-ocr tesseract-ocr-eng \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --no-create-home --home-dir /data readingroom \
    && install -d -o readingroom -g readingroom -m 0700 /data
COPY --from=packages /opt/readingroom /opt/readingroom
COPY --from=model /opt/models /opt/models
ENV PATH=/opt/readingroom/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    READINGROOM_DATA=/data \
    READINGROOM_HOST=0.0.0.0 \
    READINGROOM_PORT=8000 \
    READINGROOM_MODELS_DIR=/opt/models \
    CHROMA_PERSIST_DIR=/data/chroma
# By number, so that a cluster can see that it is not root. A folder mounted at /data must be its own.
USER 10001:10001
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGINT
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=4)"]
# Without a key it refuses to serve others, and says so: set MCP_API_KEY.
ENTRYPOINT ["readingroom"]
CMD ["serve"]
