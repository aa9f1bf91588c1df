# One image for every role: `start` is the whole service in one process, `start billing` one role of it. It holds no secret and no setting
# of an installation; those come from the environment when it starts. Node's version is the one that package.json brings elsewhere.
# The page for people is built here, and the files of packages that the service can load are told from the rest, which ends here. No
# package needs its install script, and onnxruntime-node's would download CUDA.
FROM node:24.21.0-trixie-slim AS built
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY . .
RUN npm run portal:build && node image/packages.ts /service

# Code that does not load ends the build; what Node compiles of the rest is kept, and saves every start half a second. Node keeps it for
# one user, so it is made as the one that will run it: 1000 is the base's `node`, as a number so that an orchestrator sees that it is not root.
FROM node:24.21.0-trixie-slim AS compiled
WORKDIR /app
COPY --from=built /service/node_modules node_modules
COPY . .
RUN install --directory --owner=1000 node_modules/.cache
USER 1000:1000
RUN ["node", "cli/load-all.js"]

FROM node:24.21.0-trixie-slim
LABEL org.opencontainers.image.title="Knowledge and Inference Service" \
      org.opencontainers.image.description="Documents, search by meaning, models and one wallet behind a GraphQL supergraph and the OpenAI chat protocol" \
      org.opencontainers.image.version="0.2.0" \
      org.opencontainers.image.licenses="MIT"
ENV NODE_ENV=production HOST=0.0.0.0 PORT=4000 KIS_DATA_DIR=/data
RUN install --directory --owner=1000 --group=1000 --mode=0700 /data
WORKDIR /app
# Owned by root: the service cannot change its own code.
COPY --from=built /service/node_modules node_modules
COPY . .
COPY --from=compiled /app/node_modules/.cache node_modules/.cache
COPY --from=built /app/portal/dist portal/dist
USER 1000:1000
EXPOSE 4000
# Requests under way drain within KIS_DRAIN_MS, then 8 s are for closing: whoever stops the container should wait longer than both.
STOPSIGNAL SIGTERM
# The process answers; whether what it depends on answers too is `/readyz`, which a restart would not mend. The base has no curl, and a
# Node process would take 60 MB every ten seconds; bash opens connections by itself, in 4 MB.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --start-interval=1s --retries=3 \
  CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/$PORT && printf 'GET /healthz HTTP/1.0\\r\\n\\r\\n' >&3 && read -rt 4 _ status _ <&3 && [ \"$status\" = 200 ]"]
ENTRYPOINT ["node", "/app/cli/kis.js"]
CMD ["start"]
