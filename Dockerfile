# The service in production. Its database and its chain's node are elsewhere, so what embeds them is left out.
FROM node:24.21.0-slim
WORKDIR /svc
COPY . .
RUN npm ci --omit=dev --omit=optional --no-audit --no-fund
USER node
# Node's threads do not need eight arenas of malloc for each processor: two save a tenth of the resident memory.
ENV MALLOC_ARENA_MAX=2
ENV PROFILE=production HOST=0.0.0.0 METRICS_HOST=0.0.0.0
EXPOSE 4000 4009
ENTRYPOINT ["node", "--max-semi-space-size=4", "--conditions=source", "service/src/main.ts"]
CMD ["serve"]
