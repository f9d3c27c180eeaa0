# The base that the image for NVIDIA GPUs is built on (deploy/compose.gpu.yml): what the ordinary one is built on, and
# Debian's CUDA toolkit, which the configuration of a CUDA build of LibTorch asks for.
#   docker build -f deploy/docker/cuda.Dockerfile -t dpar-cuda deploy/docker
FROM debian:bookworm-slim
RUN sed -i 's/^Components: main$/Components: main contrib non-free/' /etc/apt/sources.list.d/debian.sources && \
    apt-get update && \
    apt-get install -y --no-install-recommends nvidia-cuda-toolkit && \
    rm -rf /var/lib/apt/lists/*
