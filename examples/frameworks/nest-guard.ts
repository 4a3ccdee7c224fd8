// Limits a NestJS application with a guard. To run it, copy it into a NestJS project.
import 'reflect-metadata';
import { promisify } from 'node:util';
import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  HttpException,
  Module,
} from '@nestjs/common';
import { APP_GUARD, NestFactory } from '@nestjs/core';
import { type RateLimitOptions, rateLimit } from 'rollgate';

const handler: RateLimitOptions['handler'] = (_req, _res, next) =>
  next(new HttpException('Too many requests', 429));
const limit = promisify(rateLimit({ windowMs: 60_000, limit: 10, standardHeaders: true, handler }));

class RateLimitGuard implements CanActivate {
  async canActivate(context: ExecutionContext) {
    const http = context.switchToHttp();
    await limit(http.getRequest(), http.getResponse());
    return true;
  }
}

@Controller()
class AppController {
  @Get()
  welcome() {
    return 'Welcome.\n';
  }
}

@Module({
  controllers: [AppController],
  providers: [{ provide: APP_GUARD, useClass: RateLimitGuard }],
})
class AppModule {}

async function main() {
  const app = await NestFactory.create(AppModule, { logger: ['error'] });
  await app.listen(process.env.PORT ?? 3000, '127.0.0.1');
  console.log(`${await app.getUrl()}/`);
}

main();
