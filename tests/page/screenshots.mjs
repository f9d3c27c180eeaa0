// Pictures of the page for docs/page: three widths, light and dark, and what is printed.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from './world.mjs';

const SIZES = [[1280, 1560], [768, 1500], [390, 1500]];

export async function takeScreenshots({ browser, server, owners, directory, openSignedIn, open }) {
  mkdirSync(directory, { recursive: true });
  await server.dpar(owners.acme, ['train', 'social', '--epsilon', '0.2', '--steps', '400000', '--method', 'features', '--yes', '--no-watch']);
  await server.dpar(owners.birch, ['train', 'patients', '--epsilon', '0.3', '--steps', '400000', '--method', 'features', '--yes', '--no-watch']);
  for (const colorScheme of ['light', 'dark']) {
    for (const [width, height] of SIZES) {
      const page = await openSignedIn(browser, server, server.operatorToken, { colorScheme, viewport: { width, height }, deviceScaleFactor: 1 });
      await page.goto(`${server.origin}/#scope=tenants%2Ftenant-4%2Fpopulations%2Fgraph-4`);
      await page.locator('#jobs-rows progress[value]').first().waitFor();
      await eventually('all is computed', async () => await page.getByText('computing…').count() === 0);
      await eventually('chains are verified', async () => await page.getByText('12 of 12 chains intact').count() === 1);
      await page.screenshot({ path: join(directory, `${width}-${colorScheme}.png`) });
      await page.evaluate(() => scrollTo(0, 0));
      if (colorScheme === 'light' && width === 1280) {
        writeFileSync(join(directory, 'print.pdf'), await page.pdf({ preferCSSPageSize: true, printBackground: true }));
        await page.goto(`${server.origin}/#`);
        await page.locator('#history-scope', { hasText: 'all' }).waitFor();
        await page.locator('#history-chart .line-2').first().waitFor({ state: 'attached' });
        await page.locator('#history').screenshot({ path: join(directory, 'history-all.png') });
        await page.goto(`${server.origin}/#scope=tenants%2Facme%2Fpopulations%2Fsocial`);
        await page.locator('button[data-certificate="view"]').first().click();
        await eventually('the statement is shown', async () => (await page.locator('#certificate-text').textContent()).includes('in-toto'));
        await page.setViewportSize({ width: 1280, height: 800 });
        await page.screenshot({ path: join(directory, 'certificate.png') });
      }
      await page.context().close();
    }
    const page = await open(browser, server, { colorScheme, viewport: { width: 1280, height: 600 } });
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await page.screenshot({ path: join(directory, `sign-in-${colorScheme}.png`) });
    await page.context().close();
  }
}
