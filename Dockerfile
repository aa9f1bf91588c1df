# One image for every role: `start` is the whole service in one process, `start billing` one role of it. It holds no secret and no setting
# of an installation; those come from the environment when it starts. Node's version is the one that package.json brings elsewhere.
# No package needs its install script, and onnxruntime-node's would download CUDA.
FROM node:24.21.0-trixie-slim AS built
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY . .
RUN npm run portal:build

# Without the packages for development, and without a Node beside the base's.
FROM node:24.21.0-trixie-slim AS packages
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --omit=optional --ignore-scripts
# Libraries for other systems, source maps and tests of packages are half of it.
RUN system=$(node -p 'process.platform + "." + process.arch') && cd node_modules && \
    find onnxruntime-node/bin usearch/prebuilds -type f ! -regex ".*/${system}/.*" -delete && find . '(' -name '*.map' -o -name '*.test.ts' -o -name '*.test.tsx' ')' -delete

FROM node:24.21.0-trixie-slim
LABEL org.opencontainers.image.title="Knowledge and Inference Service" \
      org.opencontainers.image.description="Documents, search by meaning, models and one wallet behind a GraphQL supergraph and the OpenAI chat protocol" \
      org.opencontainers.image.version="0.2.0" \
      org.opencontainers.image.licenses="MIT"
# glibc gives each thread an arena of memory of its own; two are enough.
ENV NODE_ENV=production MALLOC_ARENA_MAX=2 HOST=0.0.0.0 PORT=4000 KIS_DATA_DIR=/data
RUN install --directory --owner=1000 --group=1000 --mode=0700 /data
WORKDIR /app
# Owned by root: the service cannot change its own code.
COPY --from=packages /app/node_modules node_modules
COPY . .
COPY --from=built /app/portal/dist portal/dist
USER 1000:1000
EXPOSE 4000
# Requests under way drain within KIS_DRAIN_MS, then 8 s are for closing: whoever stops the container should wait longer than both.
STOPSIGNAL SIGTERM
# The process answers; whether what it depends on answers too is `/readyz`, which a restart would not mend. The base has no curl, and a
# Node process would take 60 MB every ten seconds; bash opens connections by itself, in 4 MB.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --start-interval=1s --retries=3 \
  CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/$PORT && printf 'GET /healthz HTTP/1.0\\r\\n\\r\\n' >&3 && read -rt 4 _ status _ <&3 && [ \"$status\" = 200 ]"]
# Young generations of at most 24 MB a thread: V8 lets them grow to 96 MB on a large machine.
ENTRYPOINT ["node", "--max-semi-space-size=8", "/app/cli/kis.js"]
CMD ["start"]
