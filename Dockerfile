# Nyima as a shared service. Build: docker build -t nyima .
FROM python:3.11-slim-bookworm
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 \
    NYIMA_DB=/data/memory.db NYIMA_CACHE=/data/cache
WORKDIR /app
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
RUN pip install --constraint constraints.txt '.[server,local,docs]' \
    && useradd --system --create-home --uid 10001 nyima \
    && install -d -o nyima -g nyima -m 0700 /data
USER 10001
VOLUME /data
EXPOSE 8765
HEALTHCHECK --interval=30s --timeout=3s --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8765/health/live', timeout=2)"]
# A key must be there first: docker run --rm -v nyima:/data nyima nyima keys add first
CMD ["nyima", "serve", "--host", "0.0.0.0", "--log"]
